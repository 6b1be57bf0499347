#include <cstddef>
#include <numeric>
#include <utility>
#include <vector>

#include "learn/estep/teach/target_policy.h"
#include "learn/estep/teach/truth_segment.h"

namespace rematch {
namespace {

bool is_same_form(const Geometry& a, const Geometry& b) {
  return a.kind == b.kind && a.bins.size() == b.bins.size();
}

/// Inserts a ground truth at the last of the places with the fewest entries on its wrong side.
void insert_by_truth(std::vector<int>& order, int ground_truth) {
  int excess = 0, fewest = 0;  // entries on the wrong side, compared with the first place
  size_t best = 0;
  for (size_t i = 0; i < order.size(); ++i) {
    excess += order[i] > ground_truth ? 1 : -1;
    if (excess > fewest) continue;
    fewest = excess;
    best = i + 1;
  }
  order.insert(order.begin() + best, ground_truth);
}

/// Indices of the ground truths in the order of the answer.
std::vector<int> entry_order(const SegmentResult& result, size_t num_ground_truth,
                             RewriteOrder rewrite_order) {
  std::vector<int> order(num_ground_truth);
  std::iota(order.begin(), order.end(), 0);
  if (rewrite_order == RewriteOrder::kTruth) return order;
  order.clear();
  for (const auto& pair : result.pairs) order.push_back(pair.second);
  for (const int missing : result.false_negatives) {
    if (rewrite_order == RewriteOrder::kOwn) {
      insert_by_truth(order, missing);
    } else {
      order.push_back(missing);
    }
  }
  return order;
}

}  // namespace

// The full ground-truth answer. Matched predictions provide the shown coordinates, and the order of
// entries unless `rewrite_order: truth` (BEHAVIOUR 7.8).
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
    const ParsedObject& predicted = input.parsed.objects.at(p);
    AnswerEntry& entry = entries.at(g);
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
    ordered.push_back(entries[g]);
  result.segment = answer_segment(input.prompt, ordered, format, &result.append_text);
  return result;
}

}  // namespace rematch
