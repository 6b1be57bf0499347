#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// A box with its label, in pixels as COCO writes it: left, top, width, height.
struct LabelledBox {
  std::string label;
  double x = 0, y = 0, w = 0, h = 0;
  std::optional<double> score;  ///< of a prediction (BEHAVIOUR 20.2)
};

/// Indices of CocoScores and of kCocoScoreNames.
enum CocoScore : size_t {
  kAp,
  kAp50,
  kAp75,
  kApSmall,  ///< truths of less than 32² pixels, up to 96², above
  kApMedium,
  kApLarge,
  kAr1,  ///< with 1, 10 or 100 predictions per class and image
  kAr10,
  kAr100,
  kArSmall,  ///< with 100 predictions
  kArMedium,
  kArLarge
};
inline constexpr const char* kCocoScoreNames[] = {"ap",        "ap50",     "ap75",      "ap_small",
                                                  "ap_medium", "ap_large", "ar_1",      "ar_10",
                                                  "ar_100",    "ar_small", "ar_medium", "ar_large"};

/// Average precision (mean over IoU 0.50:0.05:0.95; at 0.50; at 0.75) and recall of one class or of
/// all; -1 without truths.
using CocoScores = std::array<double, std::size(kCocoScoreNames)>;

/// Scores over all classes, and of each.
struct CocoResult : CocoScores {
  std::vector<std::pair<std::string, CocoScores>> per_class;  ///< by label, ascending
};

/// The predictions of one class, best first, marked as hits at IoU 0.5.
struct RankedClass {
  struct Prediction {
    double score = 0;
    bool is_hit = false;

    friend void fields(auto& wire, Prediction& one) { wire(one.score, one.is_hit); }
  };
  std::string label;
  int64_t num_truths = 0;
  std::vector<Prediction> predictions;  ///< at most 100 per image
  /// best precision at recall ≥ 0, 0.01, …, 1; empty without truths
  std::vector<double> precision;
};

/// The boxes of one class in one image.
struct CocoScene {
  struct Box {
    double x, y, w, h;
    double score = 0, order = 0;  ///< of predictions; order is 1 − k/1000
    double area() const { return w * h; }
  };
  std::vector<Box> truths, predictions;
};

/// COCO's detection scores for boxes. Classes are the labels of the truths; predictions with other
/// labels are ignored. Predictions are ranked by score, then by their place in the answer and the
/// order of images. If any prediction has no score, all are ranked by place (score of the k-th:
/// 1 − k/1000). Gives the numbers of pycocotools.
/// @source pycocotools `COCOeval` (bbox)
class CocoEvaluator {
 public:
  /// Adds an image.
  /// @param predictions  in the order of the answer
  void add(const std::vector<LabelledBox>& truths, const std::vector<LabelledBox>& predictions);

  /// Cost: for each class and image, truths × predictions × 10 thresholds × 4 sizes.
  CocoResult scores() const;

  /// Every class of the truths or of the predictions, by label, ascending.
  std::vector<RankedClass> ranked_classes() const;

  /// Number of images with more predictions of a class than COCO counts, 100.
  int64_t num_cut() const;

  /// False when a prediction has no score.
  bool ranks_by_score() const { return all_scored_; }

 private:
  int64_t num_images_ = 0;
  bool all_scored_ = true;
  std::map<std::string, std::map<int64_t, CocoScene>> classes_;  ///< by label and image
};

}  // namespace rematch
