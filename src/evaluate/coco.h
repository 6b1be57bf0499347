#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// A box with its label, in pixels as COCO writes it: left, top, width, height.
struct LabelledBox {
  std::string label;
  double x = 0, y = 0, w = 0, h = 0;
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

/// COCO's detection scores for boxes. Classes are the labels of the truths: predictions of other
/// labels count for none. The predictions of an image are ranked by their place in its answer
/// (score of the k-th: 1 − k/1000), equal places by the order of images.
/// @source pycocotools `COCOeval` (bbox), whose numbers it gives
class CocoEvaluator {
 public:
  /// One image. @param predictions  in the order of the answer
  void add(const std::vector<LabelledBox>& truths, const std::vector<LabelledBox>& predictions);

  /// Cost: for each class and image, truths × predictions × 10 thresholds × 4 sizes.
  CocoResult scores() const;

 private:
  struct Box {
    double x, y, w, h;
    double score;  ///< of predictions
    double area() const { return w * h; }
  };
  /// The boxes of one class in one image.
  struct Scene {
    std::vector<Box> truths, predictions;
  };
  struct Ranked;
  static double iou(const Box& prediction, const Box& truth);
  static void match_scene(const Scene& scene, int size, std::vector<Ranked>& found,
                          int64_t& num_truths);
  static CocoScores scores_of(const std::map<int64_t, Scene>& scenes);

  int64_t num_images_ = 0;
  std::map<std::string, std::map<int64_t, Scene>> classes_;  ///< by label and image
};

}  // namespace rematch
