#include "learn/evaluate/coco.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <set>

namespace rematch {
namespace {

constexpr int kNumIous = 10, kNumRecalls = 101, kNumSizes = 4;
constexpr size_t kMaxPredictions = 100;
constexpr int kAll = 0;
constexpr double kSizeFrom[kNumSizes] = {0, 0, 32.0 * 32.0, 96.0 * 96.0},
                 kSizeTo[kNumSizes] = {1e10, 32.0 * 32.0, 96.0 * 96.0, 1e10};

// numpy.linspace(0.5, 0.95, 10), bit for bit.
double iou_threshold(int i) { return i == kNumIous - 1 ? 0.95 : i * ((0.95 - 0.5) / 9) + 0.5; }
// numpy.linspace(0, 1, 101).
double recall_threshold(int i) { return i == kNumRecalls - 1 ? 1.0 : i * 0.01; }

double mean_known(const std::vector<double>& values) {
  double sum = 0;
  int count = 0;
  for (const double value : values) {
    if (value < 0) continue;
    sum += value;
    ++count;
  }
  return count == 0 ? -1.0 : sum / count;
}

using Scene = CocoScene;
using Box = Scene::Box;

/// A prediction with its match at each IoU threshold.
struct Ranked {
  double score = 0;
  int place = 0;  ///< among the predictions of its class in its image
  std::array<bool, kNumIous> hit{}, ignored{};
};

double iou(const Box& a, const Box& b) {
  const double w = std::fmin(a.w + a.x, b.w + b.x) - std::fmax(a.x, b.x);
  if (w <= 0) return 0;
  const double h = std::fmin(a.h + a.y, b.h + b.y) - std::fmax(a.y, b.y);
  if (h <= 0) return 0;
  const double both = w * h;
  return both / (a.area() + b.area() - both);
}

// The scenes of a class, with predictions sorted by their final score, best first.
std::vector<Scene> ranked_scenes(const std::map<int64_t, Scene>& scenes, bool by_score) {
  std::vector<Scene> ranked;
  for (const auto& [image, scene] : scenes) {
    std::vector<Box>& predictions = ranked.emplace_back(scene).predictions;
    for (Box& box : predictions) box.score = by_score ? box.score : box.order;
    std::ranges::stable_sort(predictions, std::greater{}, &Box::score);
  }
  return ranked;
}

// Truths of another size are ignored: a prediction that matches only such a truth counts neither as
// hit nor as miss.
void match_scene(const Scene& scene, int size, std::vector<Ranked>& found, int64_t& num_truths) {
  const auto off_size = [size](const Box& box) {
    return box.area() < kSizeFrom[size] || box.area() > kSizeTo[size];
  };
  std::vector<Box> truths = scene.truths;
  const auto first_ignored = std::stable_partition(truths.begin(), truths.end(),
                                                   [&](const Box& box) { return !off_size(box); });
  const auto num_wanted = static_cast<size_t>(first_ignored - truths.begin());
  num_truths += static_cast<int64_t>(num_wanted);
  const size_t num_predictions = std::min(scene.predictions.size(), kMaxPredictions);
  const size_t start = found.size();
  for (size_t p = 0; p < num_predictions; ++p) {
    Ranked ranked;
    ranked.score = scene.predictions[p].score;
    ranked.place = static_cast<int>(p);
    found.push_back(ranked);
  }
  for (int t = 0; t < kNumIous; ++t) {
    std::vector<bool> taken(truths.size(), false);
    for (size_t p = 0; p < num_predictions; ++p) {
      double best = std::min(iou_threshold(t), 1 - 1e-10);
      std::ptrdiff_t chosen = -1;
      for (size_t g = 0; g < truths.size(); ++g) {
        if (taken[g]) continue;
        if (chosen >= 0 && static_cast<size_t>(chosen) < num_wanted && g >= num_wanted) break;
        const double overlap = iou(scene.predictions[p], truths[g]);
        if (overlap < best) continue;
        best = overlap;
        chosen = g;
      }
      Ranked& ranked = found[start + p];
      ranked.hit[t] = chosen >= 0;
      ranked.ignored[t] =
          chosen >= 0 ? static_cast<size_t>(chosen) >= num_wanted : off_size(scene.predictions[p]);
      if (chosen >= 0) taken[chosen] = true;
    }
  }
}

/// Matches the predictions of a class at every threshold; best first.
void rank(const std::vector<Scene>& scenes, int size, std::vector<Ranked>& found,
          int64_t& num_truths) {
  for (const Scene& scene : scenes) match_scene(scene, size, found, num_truths);
  std::ranges::stable_sort(found, std::greater{}, &Ranked::score);
}

/// Precision at the recall thresholds, and the final recall.
struct Curve {
  std::vector<double> precision = std::vector<double>(kNumRecalls, 0.0);
  double recall = 0;
};

/// @param hits  flags of the predictions that count, best first
Curve precision_curve(const std::vector<bool>& hits, int64_t num_truths) {
  std::vector<double> recall, precision;
  double tp = 0, fp = 0;
  for (const bool hit : hits) {
    (hit ? tp : fp) += 1;
    recall.push_back(tp / num_truths);
    precision.push_back(tp / (fp + tp + std::numeric_limits<double>::epsilon()));
  }
  for (size_t i = precision.size(); i-- > 1;)
    precision[i - 1] = std::max(precision[i - 1], precision[i]);
  Curve curve;
  if (!recall.empty()) curve.recall = recall.back();
  for (int r = 0; r < kNumRecalls; ++r) {
    const auto at =
        static_cast<size_t>(std::ranges::lower_bound(recall, recall_threshold(r)) - recall.begin());
    if (at < precision.size()) curve.precision[r] = precision[at];
  }
  return curve;
}

CocoScores class_scores(const std::vector<Scene>& scenes) {
  CocoScores scores{};
  scores.fill(-1);
  for (int size = 0; size < kNumSizes; ++size) {
    std::vector<Ranked> found;
    int64_t num_truths = 0;
    rank(scenes, size, found, num_truths);
    if (num_truths == 0) continue;
    const auto curve_at = [&](size_t t, int max_predictions) {
      std::vector<bool> hits;
      for (const Ranked& ranked : found) {
        if (ranked.place < max_predictions && !ranked.ignored[t]) hits.push_back(ranked.hit[t]);
      }
      return precision_curve(hits, num_truths);
    };
    std::vector<double> precisions, recalls, recalls_1, recalls_10;
    for (size_t t = 0; t < kNumIous; ++t) {
      const Curve curve = curve_at(t, kMaxPredictions);
      precisions.push_back(mean_known(curve.precision));
      recalls.push_back(curve.recall);
      if (size != kAll) continue;
      recalls_1.push_back(curve_at(t, 1).recall);
      recalls_10.push_back(curve_at(t, 10).recall);
    }
    const size_t larger = size == kAll ? 0 : static_cast<size_t>(size) - 1;
    scores[(size == kAll ? kAp : kApSmall) + larger] = mean_known(precisions);
    scores[(size == kAll ? kAr100 : kArSmall) + larger] = mean_known(recalls);
    if (size != kAll) continue;
    scores[kAp50] = precisions[0];
    scores[kAp75] = precisions[5];
    scores[kAr1] = mean_known(recalls_1);
    scores[kAr10] = mean_known(recalls_10);
  }
  return scores;
}

}  // namespace

void CocoEvaluator::add(const std::vector<LabelledBox>& truths,
                        const std::vector<LabelledBox>& predictions) {
  const int64_t image = num_images_++;
  for (const LabelledBox& box : truths)
    classes_[box.label][image].truths.push_back({box.x, box.y, box.w, box.h});
  for (size_t k = 0; k < predictions.size(); ++k) {
    const LabelledBox& box = predictions[k];
    classes_[box.label][image].predictions.push_back(
        {box.x, box.y, box.w, box.h, box.score.value_or(0), 1.0 - k / 1000.0});
    all_scored_ = all_scored_ && box.score.has_value();
  }
}

int64_t CocoEvaluator::num_cut() const {
  std::set<int64_t> images;
  for (const auto& [label, scenes] : classes_) {
    for (const auto& [image, scene] : scenes) {
      if (scene.predictions.size() > kMaxPredictions) images.insert(image);
    }
  }
  return std::ssize(images);
}

CocoResult CocoEvaluator::scores() const {
  CocoResult all{};
  for (const auto& [label, scenes] : classes_) {
    const bool is_class =
        std::ranges::any_of(scenes, [](const auto& item) { return !item.second.truths.empty(); });
    if (is_class)
      all.per_class.emplace_back(label, class_scores(ranked_scenes(scenes, all_scored_)));
  }
  for (size_t i = 0; i < all.size(); ++i) {
    std::vector<double> values;
    for (const auto& [label, scores] : all.per_class) values.push_back(scores[i]);
    all[i] = mean_known(values);
  }
  return all;
}

std::vector<RankedClass> CocoEvaluator::ranked_classes() const {
  std::vector<RankedClass> all;
  for (const auto& [label, scenes] : classes_) {
    RankedClass& ranked_class = all.emplace_back(RankedClass{.label = label});
    std::vector<Ranked> found;
    rank(ranked_scenes(scenes, all_scored_), kAll, found, ranked_class.num_truths);
    std::vector<bool> hits;
    for (const Ranked& ranked : found) {
      if (ranked.ignored[0]) continue;
      ranked_class.predictions.push_back({ranked.score, ranked.hit[0]});
      hits.push_back(ranked.hit[0]);
    }
    if (ranked_class.num_truths > 0)
      ranked_class.precision = precision_curve(hits, ranked_class.num_truths).precision;
  }
  return all;
}

}  // namespace rematch
