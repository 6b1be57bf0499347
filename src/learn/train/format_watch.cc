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
  const bool is_cut = seen_.truncated > 0 && !seen_.is_another_format();
  const std::string found =
      fmt::format("no answer of {} can be read: {}", seen_.answers, seen_.reasons());
  return fmt::format(fmt::runtime(advice::for_unusable(is_cut, options_.kind)), found, stage_1,
                     options_.max_new_tokens);
}

}  // namespace rematch
