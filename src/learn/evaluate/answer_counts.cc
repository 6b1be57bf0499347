#include "learn/evaluate/answer_counts.h"

#include <fmt/core.h>

#include <cmath>
#include <vector>

#include "base/text.h"

namespace rematch {

void AnswerCounts::add(const AnswerCounts& more) {
  answers += more.answers;
  malformed += more.malformed;
  truncated += more.truncated;
  with_object += more.with_object;
  dropped += more.dropped;
}

std::string AnswerCounts::reasons() const {
  Strings reasons;
  if (malformed > 0) reasons.push_back(fmt::format("{} are malformed", malformed));
  if (truncated > 0) reasons.push_back(fmt::format("{} are cut off", truncated));
  if (is_another_format()) {
    reasons.push_back(
        fmt::format("none of their {} entries is an object of this answer format", dropped));
  }
  return join(reasons, ", ");
}

std::string AnswerCounts::finding() const {
  if (with_object > 0 || !all_unusable() || truncated == answers) return "";
  return fmt::format("no answer of {} can be read: {}", answers, reasons());
}

AnswerCounts evaluation_counts(const std::function<std::optional<double>(const char* name)>& score,
                               int64_t num_samples) {
  const auto num_answers = [&](const char* rate, double unknown = 0) -> int64_t {
    return std::llround(score(rate).value_or(unknown) * num_samples);
  };
  return {.answers = num_samples,
          .malformed = num_answers("eval_rollout_parse_malformed_rate"),
          .truncated = num_answers("eval_rollout_parse_truncated_rate"),
          .with_object = num_answers("eval_rollout_sample_valid_pred_rate", 1),
          .dropped = std::llround(score("eval_rollout_parse_dropped_invalid").value_or(0))};
}

}  // namespace rematch
