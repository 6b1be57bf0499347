#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace rematch {

/// Notices, when a run of stage 2 begins, that no answer of the model can be used: stage 2 then has
/// nothing to learn from.
class FormatWatch {
 public:
  struct Options {
    std::string model_dir;  ///< that the run starts from
    std::string train_jsonl;
    int max_new_tokens = 0;
  };
  explicit FormatWatch(Options options) : options_(std::move(options)) {}

  /// Counts the answers of a window, or of an evaluation, until there are enough of them or one of
  /// them can be used; afterwards it does nothing.
  /// @return what to tell the user when none can be used: the count and what to do
  std::optional<std::string> observe(int64_t num_answers, int64_t num_malformed,
                                     int64_t num_truncated);

 private:
  std::string text() const;

  Options options_;
  bool is_decided_ = false;
  int64_t num_answers_ = 0, num_malformed_ = 0, num_truncated_ = 0;
};

}  // namespace rematch
