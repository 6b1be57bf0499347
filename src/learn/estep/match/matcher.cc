#include "learn/estep/match/matcher.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/flow/bins.h"
#include "base/option_range.h"
#include "learn/estep/match/assignment.h"
#include "learn/estep/match/maskiou.h"

namespace rematch {
namespace {

constexpr double kInfeasible = 1e6;
constexpr double kNoPair = -1;
constexpr int kMostInMatrix = 4096;  // 128 MiB of costs, and a fraction of a second
constexpr int kMaxResolution = 32768;

double area(const Aabb& box) {
  return static_cast<double>(box.max_x - box.min_x) * (box.max_y - box.min_y);
}

double aabb_iou(const Aabb& a, const Aabb& b) {
  const double width = std::min(a.max_x, b.max_x) - std::max(a.min_x, b.min_x);
  const double height = std::min(a.max_y, b.max_y) - std::max(a.min_y, b.min_y);
  if (width <= 0.0 || height <= 0.0) return 0.0;
  const double intersection = width * height;
  return intersection / (area(a) + area(b) - intersection);
}

double squared_centre_distance(const Aabb& a, const Aabb& b) {
  const double dx = (a.min_x + a.max_x) / 2.0 - (b.min_x + b.max_x) / 2.0;
  const double dy = (a.min_y + a.max_y) / 2.0 - (b.min_y + b.max_y) / 2.0;
  return dx * dx + dy * dy;
}

std::vector<int> nearest_boxes(const Aabb& prediction, const std::vector<Aabb>& boxes, int top_k) {
  std::vector<double> keys;  // smaller is better
  for (const Aabb& box : boxes) keys.push_back(-aabb_iou(prediction, box));
  if (std::ranges::all_of(keys, [](double key) { return key == 0.0; })) {
    for (size_t i = 0; i < boxes.size(); ++i)
      keys[i] = squared_centre_distance(prediction, boxes[i]);
  }
  std::vector<int> order(boxes.size());
  std::iota(order.begin(), order.end(), 0);
  const size_t count = std::min(order.size(), static_cast<size_t>(top_k));
  const auto better = [&keys](int a, int b) {
    const double key_a = keys[a], key_b = keys[b];
    return key_a != key_b ? key_a < key_b : a < b;
  };
  std::partial_sort(order.begin(), order.begin() + count, order.end(), better);
  order.resize(count);
  return order;
}

std::vector<Aabb> bounding_boxes(const std::vector<Geometry>& geometries) {
  std::vector<Aabb> boxes;
  for (const Geometry& geometry : geometries) boxes.push_back(bounding_box(geometry));
  return boxes;
}

// The maskIoU of each pair.
struct ScoredPairs {
  int num_predictions = 0;
  int num_ground_truth = 0;
  std::vector<double> ious;  // [prediction, ground truth]; kNoPair: no candidate, or below the gate
  int num_rejected = 0;      // candidates below the maskIoU gate

  double& iou(int p, int g) { return ious[index(p, g)]; }
  double iou(int p, int g) const { return ious[index(p, g)]; }
  bool has_candidate(int p) const {
    const auto row = ious.begin() + index(p, 0);
    return std::any_of(row, row + num_ground_truth, [](double iou) { return iou != kNoPair; });
  }

 private:
  size_t index(int p, int g) const {
    return static_cast<size_t>(p) * static_cast<size_t>(num_ground_truth) + static_cast<size_t>(g);
  }
};

ScoredPairs score_candidates(const std::vector<Geometry>& predictions,
                             const std::vector<Geometry>& ground_truth,
                             const MatchSettings& options) {
  ScoredPairs scored{static_cast<int>(predictions.size()), static_cast<int>(ground_truth.size()),
                     std::vector<double>(predictions.size() * ground_truth.size(), kNoPair), 0};
  const std::vector<Aabb> boxes = bounding_boxes(ground_truth);
  MaskCache prediction_masks(predictions, options.maskiou_resolution);
  MaskCache ground_truth_masks(ground_truth, options.maskiou_resolution);
  for (int p = 0; p < scored.num_predictions; ++p) {
    const Geometry& prediction = predictions[p];
    for (const int g : nearest_boxes(bounding_box(prediction), boxes, options.candidate_top_k)) {
      const double iou =
          mask_iou(prediction, prediction_masks.get(p), ground_truth[g], ground_truth_masks.get(g));
      if (iou < options.maskiou_gate) {
        ++scored.num_rejected;
      } else {
        scored.iou(p, g) = iou;
      }
    }
  }
  return scored;
}

// The predictions that take part in the assignment: all, or of a huge answer those that can match.
std::vector<int> competing_predictions(const ScoredPairs& scored) {
  const bool is_huge = scored.num_predictions + scored.num_ground_truth > kMostInMatrix;
  std::vector<int> chosen;
  for (int p = 0; p < scored.num_predictions; ++p) {
    if (!is_huge || scored.has_candidate(p)) chosen.push_back(p);
  }
  return chosen;
}

// The square cost matrix: pairs in the upper left, unmatched objects to the right and below, zeros
// in the lower right.
CostMatrix padded_costs(const ScoredPairs& scored, const std::vector<int>& predictions,
                        const MatchSettings& options) {
  const int num_rows = static_cast<int>(predictions.size());
  CostMatrix costs(num_rows + scored.num_ground_truth);
  for (int row = 0; row < costs.size; ++row) {
    const bool is_prediction = row < num_rows;
    for (int column = 0; column < costs.size; ++column) {
      double& cost = costs.at(row, column);
      if (column >= scored.num_ground_truth) {
        cost = is_prediction ? options.fp_cost : 0.0;
      } else if (is_prediction) {
        const double iou = scored.iou(predictions[row], column);
        cost = iou == kNoPair ? kInfeasible : 1.0 - iou;
      } else {
        cost = options.fn_cost;
      }
    }
  }
  return costs;
}

void assign_pairs(const ScoredPairs& scored, const MatchSettings& options, Matching& matching) {
  const std::vector<int> predictions = competing_predictions(scored);
  const std::vector<int> columns = solve_assignment(padded_costs(scored, predictions, options));
  for (size_t row = 0; row < predictions.size(); ++row) {
    const int p = predictions[row], column = columns[row];
    if (column >= scored.num_ground_truth || scored.iou(p, column) == kNoPair) continue;
    matching.pairs.emplace_back(p, column);
    matching.matched_maskiou_sum += scored.iou(p, column);
  }
}

std::vector<int> indices_not_set(const std::vector<bool>& flags) {
  std::vector<int> indices;
  for (size_t i = 0; i < flags.size(); ++i) {
    if (!flags[i]) indices.push_back(static_cast<int>(i));
  }
  return indices;
}

}  // namespace

void check_match_options(const MatchSettings& options) {
  if (options.candidate_top_k < 1)
    refuse_value("candidate_top_k", options.candidate_top_k, "an integer ≥ 1");
  if (!(options.maskiou_gate >= 0.0 && options.maskiou_gate <= 1.0))
    refuse_value("maskiou_gate", options.maskiou_gate, "a number in [0, 1]");
  if (options.maskiou_resolution < 1 || options.maskiou_resolution > kMaxResolution)
    refuse_value("maskiou_resolution", options.maskiou_resolution, "an integer from 1 to 32768");
  if (!(options.fp_cost >= 0.0 && std::isfinite(options.fp_cost)))
    refuse_value("fp_cost", options.fp_cost, "a number ≥ 0");
  if (!(options.fn_cost >= 0.0 && std::isfinite(options.fn_cost)))
    refuse_value("fn_cost", options.fn_cost, "a number ≥ 0");
}

std::vector<int> find_candidates(const Geometry& prediction,
                                 const std::vector<Geometry>& ground_truth, int top_k) {
  return nearest_boxes(bounding_box(prediction), bounding_boxes(ground_truth), top_k);
}

Matching match(const std::vector<Geometry>& predictions, const std::vector<Geometry>& ground_truth,
               const MatchSettings& options) {
  check_match_options(options);
  Matching matching;
  if (!predictions.empty() && !ground_truth.empty()) {
    const ScoredPairs scored = score_candidates(predictions, ground_truth, options);
    matching.gating_rejections = scored.num_rejected;
    assign_pairs(scored, options, matching);
  }
  std::vector<bool> has_pair(predictions.size(), false), is_matched(ground_truth.size(), false);
  for (const auto& [p, g] : matching.pairs) {
    has_pair[p] = true;
    is_matched[g] = true;
  }
  matching.false_positives = indices_not_set(has_pair);
  matching.false_negatives = indices_not_set(is_matched);
  return matching;
}

}  // namespace rematch
