#include "evaluate/health.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace rematch {
namespace {

/// How a sign is judged.
enum class Worse { kLower, kHigher, kFartherFromOne };

struct Sign {
  const char* name;
  const char* score;
  const char* count;  ///< score that counts what the sign is a share of; "": the samples
  Worse worse;
  double tolerance;  ///< a smaller change is noise between runs
  const char* advice;
  const char* advice_if_fewer = "";  ///< kFartherFromOne: when it fell
};

constexpr Sign kSigns[] = {
    {"precision", "eval_rollout_precision", "eval_rollout_pred_objects", Worse::kLower, 0.02,
     "it sees what is not there: `target_policy: rewrite` teaches no false positives (append keeps "
     "them); with rewrite, lower the learning "
     "rate"},
    {"label_accuracy", "eval_rollout_label_accuracy", "eval_rollout_matched", Worse::kLower, 0.02,
     "it forgets names: `rewrite` teaches them (append never does), if the training data has the "
     "names of the validation data (`rematch data check` lists them)"},
    {"duplicates", "eval_rollout_duplicates", "eval_rollout_pred_objects", Worse::kHigher, 0.01,
     "it writes objects twice: `rematch data check` finds objects that the truth has twice; "
     "`rewrite` shows each object once"},
    {"truncated", "eval_rollout_parse_truncated_rate", "", Worse::kHigher, 0.01,
     "answers do not end: `rollout_share: 0.5` mixes in whole truths with their end, and "
     "`max_new_tokens` must hold the longest truth"},
    {"malformed", "eval_rollout_parse_malformed_rate", "", Worse::kHigher, 0.01,
     "answers break the format: lower the learning rate, or mix in whole truths with "
     "`rollout_share: 0.5`"},
    {"pred_per_gt", "eval_rollout_pred_per_gt", "eval_rollout_gt_objects", Worse::kFartherFromOne,
     0.1,
     "it writes more objects than there are: `target_policy: rewrite` teaches where an answer ends "
     "(append teaches to go on); with "
     "rewrite, look for objects that the truth has twice (`rematch data check`)",
     "it stops before every object is named: check that the truth is complete, since rewrite and "
     "stage 1 teach that nothing else is there"},
};

/// How much worse, in the unit of the score; ≤ 0: no worse.
double worsening(Worse worse, double before, double now) {
  if (worse == Worse::kLower) return before - now;
  if (worse == Worse::kHigher) return now - before;
  return std::max(now - std::max(before, 1.0), std::min(before, 1.0) - now);
}

/// Of one value: binomial for a share, Poisson for a number of predictions per truth.
double variance(Worse worse, double value, double count) {
  const double spread = worse == Worse::kFartherFromOne ? value : value * (1 - value);
  return std::max(spread, 0.0) / std::max(count, 1.0);
}

}  // namespace

std::optional<Health> compare_health(const ScoreOf& before, const ScoreOf& now, int64_t num_samples,
                                     int64_t since_step) {
  Health health{.since_step = since_step};
  for (const Sign& sign : kSigns) {
    const std::optional<double> was = before(sign.score), is = now(sign.score);
    if (!was || !is) return std::nullopt;
    health.changes.emplace_back(sign.name, *is - *was);
    const auto count_of = [&](const ScoreOf& scores) {
      return *sign.count == '\0' ? static_cast<double>(num_samples)
                                 : scores(sign.count).value_or(0);
    };
    const double error = std::sqrt(variance(sign.worse, *was, count_of(before)) +
                                   variance(sign.worse, *is, count_of(now)));
    const double worse_by = worsening(sign.worse, *was, *is);
    if (worse_by <= sign.tolerance || worse_by <= 2 * error) continue;
    const bool fewer = sign.worse == Worse::kFartherFromOne && *is < *was;
    health.harms.push_back({sign.name, *was, *is, fewer ? sign.advice_if_fewer : sign.advice});
  }
  return health;
}

std::vector<std::string> Health::lines() const {
  const std::string then =
      since_step == 0
          ? "at the start"
          : fmt::format("after step {} (training.eval_on_start: true compares with the start)",
                        since_step);
  if (harms.empty()) return {"health: nothing is worse than " + then};
  std::vector<std::string> worse, lines;
  for (const Harm& harm : harms)
    worse.push_back(fmt::format("{} {:.3f} -> {:.3f}", harm.sign, harm.before, harm.now));
  lines.push_back(fmt::format("health: worse than {}: {}", then, join(worse, ", ")));
  for (const Harm& harm : harms) lines.push_back(fmt::format("  {}: {}", harm.sign, harm.advice));
  return lines;
}

}  // namespace rematch
