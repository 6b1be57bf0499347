#include "evaluate/coco_of.h"

#include "estep/match/maskiou.h"

namespace rematch {
namespace {

template <typename Object>
std::vector<LabelledBox> boxes_of(const std::vector<Object>& objects, const Sample& sample, const LabelMatch& labels) {
  const double pixels_x = sample.width_px / static_cast<double>(kNumBins), pixels_y = sample.height_px / static_cast<double>(kNumBins);
  std::vector<LabelledBox> boxes;
  for (const Object& object : objects) {
    const Aabb box = bounding_box(object.geometry);
    boxes.push_back({labels.canonical(object.desc), static_cast<double>(box.min_x) * pixels_x, static_cast<double>(box.min_y) * pixels_y,
                     static_cast<double>(box.max_x - box.min_x) * pixels_x, static_cast<double>(box.max_y - box.min_y) * pixels_y});
  }
  return boxes;
}

}  // namespace

void add_to_coco(const Examined& one, const LabelMatch& labels, CocoEvaluator& coco) {
  coco.add(boxes_of(one.ground_truth, *one.sample, labels), boxes_of(one.parsed.objects, *one.sample, labels));
}

MetricsBag coco_metrics(const CocoScores& scores) {
  MetricsBag metrics;
  metrics.add("coco_ap", scores.ap);
  metrics.add("coco_ap50", scores.ap50);
  metrics.add("coco_ap75", scores.ap75);
  metrics.add("coco_ap_small", scores.ap_small);
  metrics.add("coco_ap_medium", scores.ap_medium);
  metrics.add("coco_ap_large", scores.ap_large);
  metrics.add("coco_ar_1", scores.ar_1);
  metrics.add("coco_ar_10", scores.ar_10);
  metrics.add("coco_ar_100", scores.ar_100);
  metrics.add("coco_ar_small", scores.ar_small);
  metrics.add("coco_ar_medium", scores.ar_medium);
  metrics.add("coco_ar_large", scores.ar_large);
  return metrics;
}

}  // namespace rematch
