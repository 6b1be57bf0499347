#include "tools/python/scene_scores.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/observe/catalog.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/match/observe_matching.h"
#include "learn/evaluate/breakdown.h"
#include "learn/evaluate/coco_scene.h"
#include "learn/evaluate/confidence.h"
#include "tools/stages/scene_input.h"

namespace rematch {
namespace {

constexpr double kExtraGates[] = {0.3, 0.5};
constexpr int64_t kLargestSide = 1 << 24;

struct Scene {
  Objects predictions, ground_truth;
  std::vector<double> scores;  ///< of predictions; empty = none
  int width_px = 0, height_px = 0;
  std::optional<ParseStatus> status;
};

ParseStatus read_status(JsonFields& fields) {
  const std::string name = fields.text("status");
  for (const ParseStatus status :
       {ParseStatus::kComplete, ParseStatus::kTruncated, ParseStatus::kMalformed}) {
    if (name == parse_status_name(status)) return status;
  }
  fields.fail("status", fmt::format("\"{}\"; complete, truncated or malformed is expected", name));
}

Scene read_scene(const Json& json, const std::string& place) {
  JsonFields fields(json, input_origin(), place);
  Scene scene{
      .predictions = read_scene_objects(fields.at("predictions"), place + ".predictions", nullptr),
      .ground_truth =
          read_scene_objects(fields.at("ground_truth"), place + ".ground_truth", nullptr),
      .width_px = static_cast<int>(fields.integer("width", 1, kLargestSide)),
      .height_px = static_cast<int>(fields.integer("height", 1, kLargestSide))};
  scene.scores = read_scores(fields, scene.predictions.size());
  if (fields.has("status")) scene.status = read_status(fields);
  for (const char* other : {"sample_id", "images", "pairs", "named_right"}) fields.find(other);
  fields.finish();
  return scene;
}

/// Sums over scenes.
class SceneScores {
 public:
  SceneScores(MatchSettings match, LabelMatch labels)
      : match_(std::move(match)),
        labels_(std::move(labels)),
        at_gates_(std::size(kExtraGates)),
        breakdown_(labels_) {}

  void add(const Scene& scene) {
    const Matching matching = match(scene, match_, metrics_);
    if (scene.status) observe_status(*scene.status, metrics_);
    for (size_t i = 0; i < at_gates_.size(); ++i) {
      MatchSettings at_gate = match_;
      at_gate.maskiou_gate = kExtraGates[i];
      match(scene, at_gate, at_gates_[i]);
    }
    const auto boxes = [&](const Objects& objects, const std::vector<double>& scores) {
      return labelled_boxes(objects, scene.width_px, scene.height_px, labels_, scores);
    };
    coco_.add(boxes(scene.ground_truth, {}), boxes(scene.predictions, scene.scores));
    breakdown_.add(scene.ground_truth, scene.predictions, matching);
  }

  Json json() const {
    Json json = Json::object();
    for (const auto& [name, value] : reduce_metrics(metrics_, MetricScope::kEvaluation))
      json[name] = value;
    for (size_t i = 0; i < at_gates_.size(); ++i) {
      for (const auto& [name, value] : reduce_gate_metrics(at_gates_[i], kExtraGates[i]))
        json[name] = value;
    }
    const CocoResult coco = coco_.scores();
    for (const auto& [name, value] : reduce_metrics(coco_metrics(coco), MetricScope::kCoco))
      json[name] = value;
    json["coco_per_class"] = coco_per_class_json(coco);
    json["per_class"] = per_class_json(breakdown_, coco);
    json["per_count"] = per_count_json(breakdown_);
    add_confidence(json, coco_, breakdown_);
    return json;
  }

 private:
  Matching match(const Scene& scene, const MatchSettings& settings, MetricsBag& metrics) const {
    Matching matching = match_objects(scene.predictions, scene.ground_truth, settings);
    observe_matching(scene.predictions, scene.ground_truth, matching, match_, labels_, metrics);
    return matching;
  }

  MatchSettings match_;
  LabelMatch labels_;
  MetricsBag metrics_;
  std::vector<MetricsBag> at_gates_;
  CocoEvaluator coco_;
  Breakdown breakdown_;
};

}  // namespace

Json score_scenes(const Json& input) {
  JsonFields fields(input, input_origin(), "input");
  const Json& scenes = fields.list("scenes");
  JsonFields options = fields.object_or_empty("options");
  fields.finish();
  MatchSettings match = read_match_options(options);
  match.label_match = options.text_or("label_match", match.label_match);
  options.finish();

  std::vector<Scene> read;
  size_t with_status = 0;
  for (size_t i = 0; i < scenes.size(); ++i) {
    read.push_back(read_scene(scenes[i], fmt::format("scenes[{}]", i)));
    with_status += read.back().status.has_value();
  }
  if (with_status != 0 && with_status != read.size()) {
    throw data_error({.error = "some scenes have a status and others have none",
                      .where = "input.scenes",
                      .what = fmt::format("{} of {} have one", with_status, read.size()),
                      .fix = "give every scene its status, or none"});
  }
  SceneScores scores(match, LabelMatch::from(match.label_match));
  for (const Scene& scene : read) scores.add(scene);
  Json answer = scores.json();
  answer["num_samples"] = read.size();
  return answer;
}

}  // namespace rematch
