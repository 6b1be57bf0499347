#pragma once
#include <optional>
#include <string>

#include "learn/evaluate/advice.h"
#include "learn/evaluate/answer_counts.h"

namespace rematch {

/// Detects at the start of a stage-2 run that no answer of the model is usable: `append` then has
/// nothing to build on, and `rewrite` learns the format more slowly than stage 1.
class FormatWatch {
 public:
  struct Options {
    std::string model_dir;  ///< model that the run starts from
    std::string train_jsonl;
    int max_new_tokens = 0;
    advice::Training::Kind kind = advice::Training::Kind::kAppend;
  };
  explicit FormatWatch(Options options) : options_(std::move(options)) {}

  /// Counts the answers of a window or an evaluation, until there are enough of them or one is
  /// usable. Afterwards it does nothing.
  /// @return a warning when none is usable: the count and what to do
  std::optional<std::string> observe(const AnswerCounts& counts);

 private:
  std::string text() const;

  Options options_;
  bool is_decided_ = false;
  AnswerCounts seen_;
};

}  // namespace rematch
