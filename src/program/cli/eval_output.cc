#include "program/cli/eval_output.h"

#include <fmt/core.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/observe/catalog.h"
#include "base/observe/event.h"
#include "base/terminal_text.h"
#include "engine/ranks/phase.h"
#include "learn/evaluate/coco_scene.h"
#include "program/assembly/truth.h"
#include "program/cli/eval_tables.h"

namespace rematch {
namespace {

std::string results_path(const Job& job) {
  return job.settings().output.run_dir + "/eval_results.json";
}

}  // namespace

EvalOutput::EvalOutput(const Job& job) : job_(job), labels_(label_match(job)) {
  run_phase(job.group, "start", [this] {
    inputs_ = job_.inputs();
    inputs_.refuse(results_path(job_));
    if (!job_.is_first()) return;
    const std::string& run_dir = job_.settings().output.run_dir;
    make_directories(run_dir);
    if (job_.rolls_out()) files_.emplace(run_dir, job_.source.checkpoint, inputs_, labels_);
  });
}

void EvalOutput::add(const ScoredRollout& rollout) {
  const auto boxes = [&](const std::vector<SceneObject>& objects,
                         const std::vector<double>& scores) {
    return labelled_boxes(objects, rollout.sample->width_px, rollout.sample->height_px, labels_,
                          scores);
  };
  coco_.add(boxes(rollout.ground_truth, {}),
            boxes(to_scene(rollout.parsed.objects), rollout.scores));
  files_->add(rollout);
}

std::optional<ScoreCalibration> EvalOutput::find_calibration(
    const std::optional<ScoreCalibration>& fitted) {
  const std::string& checkpoint = job_.source.checkpoint;
  if (auto stored = ScoreCalibration::read(checkpoint)) return stored;
  // Only a checkpoint of a run gets a file, not a model that a user brought.
  if (!fitted || !std::filesystem::exists(join_path(checkpoint, "trainer_state.json")))
    return fitted;
  try {
    fitted->write(checkpoint);
    job_.terminal.say(
        fmt::format("wrote {}: from now on a score of this checkpoint is the share of such boxes "
                    "that are right",
                    join_path(checkpoint, kScoreCalibrationFile)));
  } catch (const UserError& error) {
    job_.terminal.warn("the checkpoint keeps no calibration of its scores: " +
                       error.problems().front().what);
  }
  return fitted;
}

void EvalOutput::write(EvaluationResult evaluated, bool all_scores) {
  const CocoResult coco = coco_.scores();
  if (files_) {
    for (auto& value : reduce_metrics(coco_metrics(coco), MetricScope::kCoco))
      evaluated.values.push_back(std::move(value));
  }
  Json json;
  for (const auto& [name, value] : evaluated.values) json[name] = value;
  if (!coco.per_class.empty()) json["coco_per_class"] = coco_per_class_json(coco);
  json["model"] = job_.source.checkpoint;
  json["val_jsonl"] = job_.data.val->path();
  json["num_samples"] = job_.data.val->size();
  json["eval_set"] = evaluated.eval_set;
  if (files_) files_->add_to(json, coco_, coco, find_calibration(evaluated.calibration));

  Terminal& terminal = job_.terminal;
  write_output(results_path(job_), inputs_, python_json(json, 2) + "\n");
  if (files_) files_->write(json, terminal);
  print_scores(evaluated.values, json, all_scores, terminal);
  if (all_scores && files_ && !coco_.ranks_by_score())
    terminal.say("COCO's scores rank by the order of the answers: no probabilities are known here");
  terminal.say("wrote " + results_path(job_));
  send_event("scores", results_path(job_));
  if (!files_) return;
  terminal.say("wrote " + files_->result_path() + " and files next to it");
  terminal.say("next: rematch report " + shell_word(job_.settings().output.run_dir));
}

}  // namespace rematch
