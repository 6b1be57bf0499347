#include "learn/train/format_watch.h"

#include <fmt/core.h>

#include "base/terminal_text.h"

namespace rematch {
namespace {

constexpr int64_t kMinAnswers = 4;

}  // namespace

std::optional<std::string> FormatWatch::observe(int64_t num_answers, int64_t num_malformed,
                                                int64_t num_truncated) {
  if (is_decided_ || num_answers == 0) return std::nullopt;
  num_answers_ += num_answers;
  num_malformed_ += num_malformed;
  num_truncated_ += num_truncated;
  const bool all_useless = num_malformed_ + num_truncated_ == num_answers_;
  if (all_useless && num_answers_ < kMinAnswers) return std::nullopt;
  is_decided_ = true;
  return all_useless ? std::optional(text()) : std::nullopt;
}

std::string FormatWatch::text() const {
  const std::string stage_1 =
      fmt::format("rematch init {} {} --stage1 --out stage1.yaml", shell_word(options_.model_dir),
                  shell_word(options_.train_jsonl));
  if (num_truncated_ == 0) {
    const char* advice =
        options_.teaches_format
            ? "this checkpoint has not learnt the format. `target_policy: rewrite` teaches it,\n"
              "  but stage 1 does so faster, without rollouts:"
            : "this checkpoint has not learnt the format, and `target_policy: append` cannot\n"
              "  teach it. Stop, and train stage 1 first:";
    return fmt::format("{} of {} answers are malformed:\n  {}\n  {}", num_malformed_, num_answers_,
                       advice, stage_1);
  }
  const std::string malformed =
      num_malformed_ == 0 ? "" : fmt::format(" and {} are malformed", num_malformed_);
  return fmt::format(
      "{} of {} answers are cut off at max_new_tokens ({}){}.\n  Stop, and raise "
      "custom.extra.rollout_matching.max_new_tokens;\n  if the answers never end, train stage 1 "
      "first:\n  {}",
      num_truncated_, num_answers_, options_.max_new_tokens, malformed, stage_1);
}

}  // namespace rematch
