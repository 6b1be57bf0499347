#include "learn/evaluate/health.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "learn/evaluate/signs.h"

namespace rematch {
namespace {

/// The worsening in the unit of the score; ≤ 0: no worse.
double worsening(Worse worse, double before, double now) {
  if (worse == Worse::kLower) return before - now;
  if (worse == Worse::kHigher) return now - before;
  return std::max(now - std::max(before, 1.0), std::min(before, 1.0) - now);
}

/// Variance of a score: binomial for a share, Poisson for predictions per truth.
double variance(Worse worse, double value, double count) {
  const double spread = worse == Worse::kFartherFromOne ? value : value * (1 - value);
  return std::max(spread, 0.0) / std::max(count, 1.0);
}

}  // namespace

std::optional<Health> compare_health(const ScoreOf& before, const ScoreOf& now, int64_t num_samples,
                                     int64_t since_step) {
  Health health{.since_step = since_step, .nothing_to_lose = before("eval_rollout_f1") == 0.0};
  for (const Sign& sign : signs()) {
    const bool alarms = (sign.judges & kHealthLine) != 0;
    if (!alarms && (sign.judges & kReportFall) == 0) continue;
    const std::optional<double> was = before(sign.score), is = now(sign.score);
    if (alarms && (!was || !is)) return std::nullopt;
    if (!was || !is) continue;
    if (alarms) health.changes.emplace_back(sign.name, *is - *was);
    if (*sign.count != '\0' && now(sign.count) == 0.0) continue;  // nothing to judge
    const auto count = [&](const ScoreOf& scores) {
      return *sign.count == '\0' ? static_cast<double>(num_samples)
                                 : scores(sign.count).value_or(0);
    };
    const double error = std::sqrt(variance(sign.worse, *was, count(before)) +
                                   variance(sign.worse, *is, count(now)));
    const double worse_by = worsening(sign.worse, *was, *is);
    if (worse_by <= sign.tolerance || worse_by <= 2 * error) continue;
    (alarms ? health.harms : health.falls).push_back({sign.name, *was, *is});
  }
  return health;
}

std::vector<std::string> Health::lines(bool is_stage1) const {
  const std::string then =
      since_step == 0 ? "at the start" : fmt::format("after step {}", since_step);
  if (harms.empty() && nothing_to_lose)
    return {fmt::format("health: nothing to lose yet (F1 0 {})", then)};
  if (harms.empty() && falls.empty())
    return {"health: nothing in the answers is worse than " + then};
  const std::vector<Harm>& shown = harms.empty() ? falls : harms;
  std::vector<std::string> worse, lines;
  for (const Harm& harm : shown)
    worse.push_back(fmt::format("{} {:.3f} -> {:.3f}", harm.sign, harm.before, harm.now));
  lines.push_back(fmt::format("health: {} than {}: {}",
                              harms.empty() ? "fewer objects are right" : "worse", then,
                              join(worse, ", ")));
  const auto malformed = std::find_if(shown.begin(), shown.end(), [](const Harm& harm) {
    return std::string_view(harm.sign) == "malformed";
  });
  for (const Harm& harm : shown) {
    const Sign& sign = sign_named(harm.sign);
    const bool is_low = harm.now < harm.before;
    lines.push_back(
        fmt::format("  {}: {}", harm.sign,
                    advice_for_value(sign, harm.now, is_low,
                                     malformed == shown.end() ? 0 : malformed->now, is_stage1)));
  }
  return lines;
}

}  // namespace rematch
