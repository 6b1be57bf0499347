#include "learn/train/step_metrics.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <string>
#include <utility>

#include "engine/ranks/gather.h"

namespace rematch {
namespace {

using Values = std::vector<double>;

/// Splits values by micro-batch: one for each sample, or one for each micro-batch.
std::vector<Values> split_by_micro_batch(const Values& values, const std::vector<int64_t>& sizes,
                                         bool by_sample) {
  std::vector<Values> parts;
  auto next = values.begin();
  for (const int64_t size : sizes) {
    const auto end = next + (by_sample ? size : 1);
    parts.emplace_back(next, end);
    next = end;
  }
  return parts;
}

/// The values of all ranks in window order; empty unless every rank observed one for each sample,
/// or one for each micro-batch.
Values window_order_values(const std::vector<StepMetrics>& ranks, const std::string& name) {
  bool is_by_sample = true, is_by_micro_batch = true;
  for (const StepMetrics& rank : ranks) {
    const auto count = std::ssize(rank.values(name));
    const std::vector<int64_t>& sizes = rank.micro_batches;
    is_by_sample = is_by_sample && count == std::accumulate(sizes.begin(), sizes.end(), int64_t{0});
    is_by_micro_batch = is_by_micro_batch && count == std::ssize(sizes);
  }
  if (!is_by_sample && !is_by_micro_batch) return {};

  std::vector<std::vector<Values>> parts;
  for (const StepMetrics& rank : ranks)
    parts.push_back(split_by_micro_batch(rank.values(name), rank.micro_batches, is_by_sample));
  Values all;
  for (const Values& part : in_window_order(std::move(parts)))
    all.insert(all.end(), part.begin(), part.end());
  return all;
}

Values slowest_rank_values(const std::vector<StepMetrics>& ranks, const std::string& name) {
  const auto is_faster = [&](const StepMetrics& a, const StepMetrics& b) {
    return a.sum(name) < b.sum(name);
  };
  return std::ranges::max_element(ranks, is_faster)->values(name);
}

Values merge_values(const std::vector<StepMetrics>& ranks, const std::string& name) {
  if (name.starts_with("time/")) return slowest_rank_values(ranks, name);
  const bool has_new_window = !ranks.front().micro_batches.empty();
  if (Values all = window_order_values(ranks, name); has_new_window && !all.empty()) return all;
  if (ranks.front().values(name).size() <= 1) return ranks.front().values(name);
  Values all;
  for (const StepMetrics& rank : ranks)
    all.insert(all.end(), rank.values(name).begin(), rank.values(name).end());
  return all;
}

}  // namespace

MetricsBag gather_metrics(Group& group, const StepMetrics& mine) {
  if (group.is_alone()) return mine;
  const std::vector<StepMetrics> ranks = gather(group, mine);
  if (group.rank() != 0) return mine;
  std::set<std::string> names;
  for (const StepMetrics& rank : ranks) {
    for (const auto& [name, values] : rank.all()) names.insert(name);
  }
  MetricsBag all;
  for (const std::string& name : names) {
    for (const double value : merge_values(ranks, name)) all.add(name, value);
  }
  return all;
}

}  // namespace rematch
