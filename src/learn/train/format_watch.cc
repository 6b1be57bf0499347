#include "learn/train/format_watch.h"

#include <fmt/core.h>

#include "base/terminal_text.h"

namespace rematch {
namespace {

constexpr int64_t kMinAnswers = 4;

}  // namespace

std::optional<std::string> FormatWatch::observe(const AnswerCounts& counts) {
  if (is_decided_ || counts.answers == 0) return std::nullopt;
  seen_.add(counts);
  const bool all_useless = seen_.all_unusable();
  if (all_useless && seen_.answers < kMinAnswers) return std::nullopt;
  is_decided_ = true;
  return all_useless ? std::optional(text()) : std::nullopt;
}

std::string FormatWatch::text() const {
  const std::string stage_1 =
      fmt::format("rematch init {} {} --stage1 --out stage1.yaml", shell_word(options_.model_dir),
                  shell_word(options_.train_jsonl));
  if (seen_.truncated == 0 || seen_.is_another_format()) {
    const char* advice =
        options_.teaches_format
            ? "this checkpoint has not learnt the format. `target_policy: rewrite` teaches it,\n"
              "  but stage 1 does so faster, without rollouts:"
            : "this checkpoint has not learnt the format, and `target_policy: append` cannot\n"
              "  teach it. Stop, and train stage 1 first:";
    const std::string found =
        seen_.is_another_format()
            ? seen_.finding()
            : fmt::format("{} of {} answers are malformed", seen_.malformed, seen_.answers);
    return fmt::format("{}:\n  {}\n  {}", found, advice, stage_1);
  }
  const std::string malformed =
      seen_.malformed == 0 ? "" : fmt::format(" and {} are malformed", seen_.malformed);
  return fmt::format(
      "{} of {} answers are cut off at max_new_tokens ({}){}.\n  Stop, and raise "
      "custom.extra.rollout_matching.max_new_tokens;\n  if the answers never end, train stage 1 "
      "first:\n  {}",
      seen_.truncated, seen_.answers, options_.max_new_tokens, malformed, stage_1);
}

}  // namespace rematch
