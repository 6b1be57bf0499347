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

/// The first evaluation over a set.
std::vector<LogEntry>::const_iterator first_over(const std::vector<LogEntry>& history,
                                                 const std::string& eval_set) {
  return std::find_if(history.begin(), history.end(), [&](const LogEntry& entry) {
    return has_rollout_scores(entry) && entry.eval_set == eval_set;
  });
}

}  // namespace

std::optional<Health> health_since_start(const std::vector<LogEntry>& history,
                                         const MetricValues& now, int64_t num_samples,
                                         const std::string& eval_set) {
  const auto start = first_over(history, eval_set);
  if (start == history.end()) return std::nullopt;
  return compare_health(scores_in(start->values), scores_in(now), num_samples, start->step);
}

std::optional<Health> health_at_end(const std::vector<LogEntry>& history, int64_t num_samples) {
  const auto last = std::find_if(history.rbegin(), history.rend(), has_rollout_scores);
  if (last == history.rend()) return std::nullopt;
  const auto start = first_over(history, last->eval_set);
  if (&*start == &*last) return std::nullopt;
  return compare_health(scores_in(start->values), scores_in(last->values), num_samples,
                        start->step);
}

MetricValues health_metrics(const Health& health) {
  MetricsBag bag;
  bag.add("health/worse", static_cast<double>(health.harms.size()));
  for (const auto& [sign, change] : health.changes) bag.add("health/" + sign, change);
  return reduce_metrics(bag, MetricScope::kHealth);
}

}  // namespace rematch
