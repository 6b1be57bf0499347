#include <numeric>
#include <utility>

#include "learn/estep/teach/target_policy.h"
#include "learn/estep/teach/truth_segment.h"

namespace rematch {
namespace {

bool is_same_form(const Geometry& a, const Geometry& b) {
  return a.kind == b.kind && a.bins.size() == b.bins.size();
}

/// Indices of the ground truths in the order of the answer.
std::vector<int> entry_order(const SegmentResult& result, size_t num_ground_truth,
                             RewriteOrder rewrite_order) {
  std::vector<int> order(num_ground_truth);
  std::iota(order.begin(), order.end(), 0);
  if (rewrite_order == RewriteOrder::kTruth) return order;
  order.clear();
  for (const auto& pair : result.pairs) order.push_back(pair.second);
  order.insert(order.end(), result.false_negatives.begin(), result.false_negatives.end());
  return order;
}

}  // namespace

// The full ground-truth answer. Matched predictions provide the shown coordinates, and the order of
// entries with `rewrite_order: rollout` (BEHAVIOUR 7.8).
SegmentResult rewrite_target(const TargetInput& input, const AnswerFormat& format,
                             const TargetSettings& options) {
  SegmentResult result;
  std::vector<AnswerEntry> entries;
  for (const SceneObject& object : input.ground_truth)
    entries.push_back({.shown = object, .taught_bins = object.geometry.bins});
  const bool takes_predictions = options.incomplete_rollouts == IncompleteRollouts::kKeep ||
                                 input.parsed.status == ParseStatus::kComplete;
  for (const auto& [p, g] :
       takes_predictions ? input.matching.pairs : std::vector<std::pair<int, int>>()) {
    const ParsedObject& predicted = input.parsed.objects.at(static_cast<size_t>(p));
    AnswerEntry& entry = entries.at(static_cast<size_t>(g));
    if (is_same_form(predicted.geometry, entry.shown.geometry)) {
      entry.shown.geometry = predicted.geometry;
      entry.written = predicted.written;
      entry.source = SlotSource::kPrefix;
      ++result.num_supervised_pairs;
    }
    result.pairs.emplace_back(p, g);
  }
  result.false_negatives = missing_indices(result.pairs, entries.size());
  std::vector<AnswerEntry> ordered;
  for (const int g : entry_order(result, entries.size(), options.rewrite_order))
    ordered.push_back(entries[static_cast<size_t>(g)]);
  result.segment = answer_segment(input.prompt, ordered, format, &result.append_text);
  return result;
}

}  // namespace rematch
