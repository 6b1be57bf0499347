#pragma once
#include <cstdint>
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

/// Average precision and recall of one class or of all; -1 where nothing is to be found.
struct CocoScores {
  /// mean over IoU 0.50:0.05:0.95; at 0.50; at 0.75
  double ap = -1, ap50 = -1, ap75 = -1;
  /// truths below 32², up to 96², above, in pixels
  double ap_small = -1, ap_medium = -1, ap_large = -1;
  /// with that many predictions of a class and image
  double ar_1 = -1, ar_10 = -1, ar_100 = -1;
  double ar_small = -1, ar_medium = -1, ar_large = -1;  ///< with 100
};

/// Scores over all classes, and of each.
struct CocoResult : CocoScores {
  std::vector<std::pair<std::string, CocoScores>> per_class;  ///< by label, ascending
};

/// The predictions of one class, best first, and whether each hits a truth at IoU 0.5.
struct RankedClass {
  struct Prediction {
    double score = 0;
    bool is_hit = false;
  };
  std::string label;
  int64_t num_truths = 0;
  std::vector<Prediction> predictions;  ///< at most 100 of an image
  /// at recall 0, 0.01, …, 1: the best precision at that recall or beyond; empty without truths
  std::vector<double> precision;
};

/// COCO's detection scores for boxes. Classes are the labels of the truths: predictions of other
/// labels count for none. Predictions are ranked by their scores, equal ones by their place in the
/// answer and by the order of images. When any prediction has no score, all are ranked by their
/// place (score of the k-th: 1 − k/1000).
/// @source pycocotools `COCOeval` (bbox), whose numbers it gives
class CocoEvaluator {
 public:
  /// One image. @param predictions  in the order of the answer
  void add(const std::vector<LabelledBox>& truths, const std::vector<LabelledBox>& predictions);

  /// Cost: for each class and image, truths × predictions × 10 thresholds × 4 sizes.
  CocoResult scores() const;

  /// Every class of the truths or of the predictions, by label, ascending.
  std::vector<RankedClass> ranked_classes() const;

  /// False when some prediction came without a score.
  bool ranks_by_score() const { return all_scored_; }

 private:
  struct Box {
    double x, y, w, h;
    double score = 0, order = 0;  ///< of predictions; order: 1 − k/1000
    double area() const { return w * h; }
  };
  /// The boxes of one class in one image.
  struct Scene {
    std::vector<Box> truths, predictions;
  };
  struct Ranked;
  std::vector<Scene> ranked_scenes(const std::map<int64_t, Scene>& scenes) const;
  static double iou(const Box& prediction, const Box& truth);
  static void match_scene(const Scene& scene, int size, std::vector<Ranked>& found,
                          int64_t& num_truths);
  /// The predictions of a class, matched at every threshold, best first.
  static void rank(const std::vector<Scene>& ranked_scenes, int size, std::vector<Ranked>& found,
                   int64_t& num_truths);
  static CocoScores scores_of(const std::vector<Scene>& scenes);

  int64_t num_images_ = 0;
  bool all_scored_ = true;
  std::map<std::string, std::map<int64_t, Scene>> classes_;  ///< by label and image
};

}  // namespace rematch
