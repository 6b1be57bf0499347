#include "program/cli/eval_files.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/flow/object_json.h"
#include "learn/evaluate/breakdown.h"
#include "learn/evaluate/confidence.h"
#include "model/text/lossy.h"
#include "tools/records/coco_json.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

bool is_one_file(const Json& a, const Json& b) {
  std::error_code error;
  return a.is_string() && b.is_string() &&
         fs::equivalent(a.get<std::string>(), b.get<std::string>(), error);
}

/// A warning when a file of this name is about another model or other data; "" otherwise.
std::string replaced_text(const std::string& path, const Json& result) {
  if (!is_file(path)) return "";
  try {
    const Json old = parse_json(read_file(path), path);
    for (const char* key : {"model", "val_jsonl", "eval_set"}) {
      const Json now = result.value(key, Json());
      if (old.is_object() && old.contains(key) && old[key] != now && !is_one_file(old[key], now))
        return fmt::format("{} held the evaluation of {} {}: it is replaced", path, key,
                           show_json(old[key]));
    }
  } catch (const UserError&) {
    // A damaged file is replaced without regret.
  }
  return "";
}

/// The list of object_json().
Json objects_json(const Objects& objects) {
  Json list = Json::array();
  for (const SceneObject& object : objects)
    list.push_back(object_json(object.desc, object.geometry));
  return list;
}

}  // namespace

Json rollout_json(const ScoredRollout& rollout) {
  Json line{{"sample_id", rollout.sample->sample_id},
            {"width", rollout.sample->width_px},
            {"height", rollout.sample->height_px},
            {"status", parse_status_name(rollout.parsed.status)},
            {"predictions", objects_json(to_scene(rollout.parsed.objects))}};
  if (!rollout.scores.empty()) line["scores"] = rollout.scores;
  line["ground_truth"] = objects_json(rollout.ground_truth);
  line["pairs"] = rollout.matching.pairs;
  return line;
}

EvalFiles::EvalFiles(const std::string& run_dir, const std::string& name, InputFiles inputs,
                     const LabelMatch& labels)
    : base_(join_path(run_dir, "eval/" + name)),
      inputs_(std::move(inputs)),
      labels_(labels),
      breakdown_(labels) {
  for (const char* ending : {".json", ".samples.jsonl", ".predictions.json", ".truth.json"})
    inputs_.refuse(base_ + ending);  // before the work, not after it
  make_directories(join_path(run_dir, "eval"));
}

void EvalFiles::add(const ScoredRollout& one) {
  const Objects predictions = to_scene(one.parsed.objects);
  breakdown_.add(one.ground_truth, predictions, one.matching);
  Json line = rollout_json(one);
  line["images"] = Json::array();
  for (const std::string& path : one.sample->image_paths)
    line["images"].push_back(lossy_utf8(fs::absolute(path).lexically_normal().string()));
  line["named_right"] = Json::array();
  for (const auto& [p, t] : one.matching.pairs) {
    line["named_right"].push_back(labels_.canonical(predictions[p].desc) ==
                                  labels_.canonical(one.ground_truth[t].desc));
  }
  answered_.push_back({*one.sample, one.ground_truth, predictions, one.scores});
  lines_.push_back(std::move(line));
}

void EvalFiles::add_to(Json& result, const CocoEvaluator& coco, const CocoResult& found,
                       const std::optional<ScoreCalibration>& scale) {
  result["per_class"] = per_class_json(breakdown_, found);
  result["per_count"] = per_count_json(breakdown_);
  add_confidence(result, coco, breakdown_, scale ? &*scale : nullptr);
  for (size_t i = 0; scale && i < answered_.size(); ++i) {
    std::vector<double>& scores = answered_[i].scores;
    if (scores.empty()) continue;
    lines_[i]["raw_scores"] = scores;
    lines_[i]["scores"] = scores = (*scale)(scores);
  }
  const std::string name = fs::path(base_).filename().string();
  result["files"] = {{"samples", name + ".samples.jsonl"},
                     {"predictions", name + ".predictions.json"},
                     {"truth", name + ".truth.json"}};
}

// Classes are numbered by the sorted labels of truths and predictions; a prediction of a class that
// no truth has is kept, and counts for none, as in the scores above.
void EvalFiles::write(const Json& result, Terminal& terminal) const {
  if (const std::string text = replaced_text(result_path(), result); !text.empty())
    terminal.warn(text);
  std::set<std::string> labels;
  for (const Answered& one : answered_) {
    for (const auto* scene : {&one.truths, &one.predictions}) {
      for (const SceneObject& object : *scene) labels.insert(labels_.class_name(object.desc));
    }
  }
  CocoFile truth(labels);
  Json found = Json::array();
  for (const auto& [sample, truths, predictions, scores] : answered_) {
    truth.add_image(sample.sample_id, sample.image_paths.empty() ? "" : sample.image_paths.front(),
                    sample.width_px, sample.height_px);
    for (const SceneObject& object : truths)
      truth.add_box(sample.sample_id, labels_.class_name(object.desc),
                    coco_box(object.geometry, sample.width_px, sample.height_px));
    for (size_t k = 0; k < predictions.size(); ++k) {
      const SceneObject& object = predictions[k];
      found.push_back(
          coco_result(sample.sample_id, truth.category_id(labels_.class_name(object.desc)),
                      coco_box(object.geometry, sample.width_px, sample.height_px),
                      scores.empty() ? 1.0 - static_cast<double>(k) / 1000.0 : scores[k]));
    }
  }
  write_output(result_path(), inputs_, python_json(result, 2) + "\n");
  std::string samples;
  for (const Json& line : lines_) samples += json_line(line);
  write_output(base_ + ".samples.jsonl", inputs_, samples);
  write_output(base_ + ".predictions.json", inputs_, python_json(found) + "\n");
  write_output(base_ + ".truth.json", inputs_, truth.text());
}

}  // namespace rematch
