#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/observe/terminal.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/rollout_scorer.h"

namespace rematch {

/// Tells whether given answers are written in another format than the one that they are read in.
class OtherFormats {
 public:
  /// @param name  the format that reads them
  /// @param options  of the scorer
  OtherFormats(std::string name, std::shared_ptr<const Tokenizer> tokenizer,
               const RolloutScorer::Options& options)
      : name_(std::move(name)), tokenizer_(std::move(tokenizer)), options_(options) {}

  /// Takes an answer as it was read; the first ones are kept.
  void add(const ScoredRollout& answer);
  /// Warns of entries that do not count, and names a format that reads more of such answers, or
  /// that finds more of the truth: numbers of another unit are read as well.
  void warn(Terminal& terminal) const;

 private:
  struct Found {
    int64_t objects = 0;  ///< of the answers that were not read as a whole
    int64_t matches = 0;  ///< objects of the truth, in the first answers
  };
  Found find(const std::string& name) const;

  std::string name_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  const RolloutScorer::Options& options_;
  int64_t num_dropped_ = 0;
  std::vector<ScoredRollout> unread_, first_;
};

}  // namespace rematch
