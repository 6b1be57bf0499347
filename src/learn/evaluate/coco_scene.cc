#include "learn/evaluate/coco_scene.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/flow/bins.h"

namespace rematch {

std::vector<LabelledBox> labelled_boxes(const Objects& objects, int width_px, int height_px,
                                        const LabelMatch& labels,
                                        const std::vector<double>& scores) {
  REMATCH_CHECK(scores.empty() || scores.size() == objects.size(), "one score for each object");
  const double pixels_x = width_px / static_cast<double>(kNumBins),
               pixels_y = height_px / static_cast<double>(kNumBins);
  std::vector<LabelledBox> boxes;
  for (const SceneObject& object : objects) {
    const Aabb box = bounding_box(object.geometry);
    boxes.push_back({labels.class_name(object.desc), box.min_x * pixels_x, box.min_y * pixels_y,
                     (box.max_x - box.min_x) * pixels_x, (box.max_y - box.min_y) * pixels_y});
  }
  for (size_t i = 0; i < scores.size(); ++i) boxes[i].score = scores[i];
  return boxes;
}

std::vector<double> read_scores(JsonFields& scene, size_t num_predictions) {
  std::vector<double> scores;
  scene.find("raw_scores");  // of `rematch eval`; known, and not needed
  if (!scene.has("scores")) return scores;
  for (const Json& value : scene.list("scores")) {
    const double score = value.is_number() ? value.get<double>() : -1;
    if (!(score >= 0 && score <= 1))
      scene.fail("scores", show_json(value) + "; numbers from 0 to 1 are expected");
    scores.push_back(score);
  }
  if (scores.size() != num_predictions)
    scene.fail("scores",
               fmt::format("{} scores of {} predictions", scores.size(), num_predictions));
  return scores;
}

MetricsBag coco_metrics(const CocoScores& scores) {
  MetricsBag metrics;
  for (size_t i = 0; i < scores.size(); ++i)
    metrics.add(std::string("coco_") + kCocoScoreNames[i], scores[i]);
  return metrics;
}

Json coco_per_class_json(const CocoResult& coco) {
  Json json = Json::object();
  for (const auto& [label, scores] : coco.per_class) {
    for (const CocoScore score : {kAp, kAp50, kAp75, kAr100})
      json[label][kCocoScoreNames[score]] = scores[score];
  }
  return json;
}

}  // namespace rematch
