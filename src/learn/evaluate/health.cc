#include "learn/evaluate/health.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace rematch {
namespace {

constexpr Sign kSigns[] = {
    {"precision", "eval_rollout_precision", "eval_rollout_pred_objects"},
    {.name = "f1", .score = "eval_rollout_f1", .count = "eval_rollout_gt_objects", .alarms = false},
    {"label_accuracy", "eval_rollout_label_accuracy", "eval_rollout_matched"},
    {"f1_labels", "eval_rollout_f1_labels", "eval_rollout_gt_objects", Worse::kLower, 0.02, false},
    {"truncated", "eval_rollout_parse_truncated_rate", "", Worse::kHigher, 0.01},
    {"malformed", "eval_rollout_parse_malformed_rate", "", Worse::kHigher, 0.01},
    {"duplicates", "eval_rollout_duplicates", "eval_rollout_pred_objects", Worse::kHigher, 0.01},
    {"pred_per_gt", "eval_rollout_pred_per_gt", "eval_rollout_gt_objects", Worse::kFartherFromOne,
     0.1},
    {"absent_answered", "eval_rollout_absent_answered", "eval_rollout_absent_names",
     Worse::kHigher},
};

/// The worsening in the unit of the score; ≤ 0: no worse.
double worsening(Worse worse, double before, double now) {
  if (worse == Worse::kLower) return before - now;
  if (worse == Worse::kHigher) return now - before;
  return std::abs(now - 1) - std::abs(before - 1);
}

/// Variance of a score: binomial for a share, Poisson for predictions per truth.
double variance(Worse worse, double value, double count) {
  const double spread = worse == Worse::kFartherFromOne ? value : value * (1 - value);
  return std::max(spread, 0.0) / std::max(count, 1.0);
}

}  // namespace

std::span<const Sign> signs() { return kSigns; }

std::optional<Health> compare_health(const ScoreOf& before, const ScoreOf& now, int64_t num_samples,
                                     int64_t since_step) {
  if (!before(kSigns->score) || !now(kSigns->score)) return std::nullopt;
  const std::optional<double> f1 = before("eval_rollout_f1");
  Health health{.since_step = since_step,
                .nothing_to_lose = f1 == 0.0,
                .f1_rose = f1 && now("eval_rollout_f1") > f1};
  for (const Sign& sign : signs()) {
    const std::optional<double> was = before(sign.score), is = now(sign.score);
    if (!was || !is) continue;
    if (sign.alarms) health.changes.emplace_back(sign.name, *is - *was);
    const bool of_samples = *sign.count == '\0';
    if (health.nothing_to_lose ||
        (!of_samples && (before(sign.count) == 0.0 || now(sign.count) == 0.0)))
      continue;
    const auto count = [&](const ScoreOf& scores) {
      return of_samples ? num_samples : scores(sign.count).value_or(0);
    };
    const double error = std::sqrt(variance(sign.worse, *was, count(before)) +
                                   variance(sign.worse, *is, count(now)));
    const double worse_by = worsening(sign.worse, *was, *is);
    if (worse_by <= sign.tolerance || worse_by <= 2 * error) continue;
    (sign.alarms ? health.harms : health.falls).push_back({sign.name, *was, *is});
  }
  return health;
}

Strings Health::lines(const advice::Training& training) const {
  const std::string then =
      since_step == 0 ? "at the start" : fmt::format("after step {}", since_step);
  if (nothing_to_lose) return {fmt::format("health: nothing to lose yet (F1 0 {})", then)};
  const std::vector<Harm>& shown = harms.empty() ? falls : harms;
  if (shown.empty()) return {"health: nothing in the answers is worse than " + then};
  Strings worse;
  double malformed = 0;
  for (const Harm& harm : shown) {
    worse.push_back(fmt::format("{} {:.3f} -> {:.3f}", harm.sign, harm.before, harm.now));
    if (harm.sign == "malformed") malformed = harm.now;
  }
  Strings lines{fmt::format("health: {} than {}: {}",
                            harms.empty() ? "fewer objects are right" : "worse", then,
                            join(worse, ", "))};
  if (training.is_unfinished()) lines.push_back(fmt::format("  {}", advice::kTrainOn));
  for (const Harm& harm : shown) {
    if (training.is_unfinished()) break;
    const bool is_low = harm.now < harm.before;
    lines.push_back(fmt::format(
        "  {}: {}", harm.sign, advice::for_sign(harm.sign, training, harm.now, is_low, malformed)));
  }
  return lines;
}

}  // namespace rematch
