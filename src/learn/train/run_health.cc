#include "learn/train/run_health.h"

#include <algorithm>

#include "base/observe/catalog.h"

namespace rematch {
namespace {

template <typename Values>
ScoreOf scores_in(const Values& values) {
  return [&values](std::string_view name) { return find_value(values, name); };
}

bool has_rollout_scores(const LogEntry& entry) {
  return find_value(entry.values, "eval_rollout_precision").has_value();
}

}  // namespace

std::optional<Health> health_since_start(const std::vector<LogEntry>& history,
                                         const MetricValues& now, int64_t num_samples,
                                         const std::string& eval_set) {
  const auto start = std::ranges::find_if(history, [&](const LogEntry& entry) {
    return has_rollout_scores(entry) && entry.eval_set == eval_set;
  });
  if (start == history.end()) return std::nullopt;
  return compare_health(scores_in(start->values), scores_in(now), num_samples, start->step);
}

MetricValues health_metrics(const Health& health) {
  MetricsBag bag;
  bag.add("health/worse", health.harms.size());
  for (const auto& [sign, change] : health.changes) bag.add("health/" + sign, change);
  return reduce_metrics(bag, MetricScope::kHealth);
}

}  // namespace rematch
