#include "program/cli/eval_output.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/observe/catalog.h"
#include "base/observe/event.h"
#include "base/terminal_text.h"
#include "engine/ranks/phase.h"
#include "learn/evaluate/coco_scene.h"
#include "learn/evaluate/eval_set.h"
#include "program/assembly/ask.h"
#include "program/cli/eval_tables.h"

namespace rematch {
namespace {

constexpr int64_t kFewest = 4;  // records from which a checkpoint keeps a calibration

/// True if both were measured with the same prompts, labels, decoding and matching.
bool is_of_question(const ScoreCalibration& stored, const ScoreCalibration& fitted) {
  Strings differences = eval_set_differences(stored.eval_set(), fitted.eval_set());
  std::erase(differences, "records");
  return differences.empty();
}

}  // namespace

EvalOutput::EvalOutput(Evaluated subject, Terminal& terminal, Group& group)
    : subject_(std::move(subject)), terminal_(terminal) {
  run_phase(group, "start", [&] {
    subject_.inputs.refuse(results_path());
    if (group.rank() != 0) return;
    make_directories(subject_.run_dir);
    if (subject_.has_answers)
      files_.emplace(subject_.run_dir,
                     name_of_evaluated(subject_.name, subject_.run_dir) + ending(), subject_.inputs,
                     subject_.labels);
  });
}

void EvalOutput::add(const ScoredRollout& rollout) {
  const auto boxes = [&](const Objects& objects, const std::vector<double>& scores) {
    return labelled_boxes(objects, rollout.sample->width_px, rollout.sample->height_px,
                          subject_.labels, scores);
  };
  coco_.add(boxes(rollout.ground_truth, {}),
            boxes(to_scene(rollout.parsed.objects), rollout.scores));
  files_->add(rollout);
}

std::optional<ScoreCalibration> EvalOutput::find_calibration(
    const std::optional<ScoreCalibration>& fitted) {
  const std::string& checkpoint = subject_.checkpoint;
  if (checkpoint.empty()) return std::nullopt;
  if (!subject_.has_own_weights) return fitted;
  const auto stored = ScoreCalibration::read(checkpoint);
  const bool fits =
      stored && stored->fits(checkpoint) && (!fitted || is_of_question(*stored, *fitted));
  if (stored && (fits || !fitted)) return stored;
  const std::optional<int64_t> step =
      stored ? stored->weights_step(checkpoint) : step_of_weights(checkpoint);
  // Only a checkpoint of a run gets a file, not a model that a user brought.
  if (!fitted || !step || !subject_.has_own_question || subject_.records.size() < kFewest)
    return fitted;
  try {
    ScoreCalibration kept = *fitted;
    kept.set_step(*step);
    kept.write(checkpoint, *step);
    terminal_.say(
        fmt::format("wrote {}: a score of this checkpoint is now the share of such boxes "
                    "that are right",
                    join_path(checkpoint, kScoreCalibrationFile)));
  } catch (const UserError& error) {
    terminal_.warn("the checkpoint keeps no calibration of its scores: " +
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
  json["model"] = subject_.model;
  json["val_jsonl"] = subject_.records.path();
  json["num_samples"] = subject_.records.size();
  if (!evaluated.eval_set.empty()) json["eval_set"] = evaluated.eval_set;
  if (files_) files_->add_to(json, coco_, coco, find_calibration(evaluated.calibration));

  write_output(results_path(), subject_.inputs, python_json(json, 2) + "\n");
  if (files_) files_->write(json, terminal_);
  print_scores(evaluated.values, json, all_scores, terminal_);
  if (evaluated.collapse) terminal_.warn(evaluated.collapse->text());
  if (const int64_t num_cut = coco_.num_cut(); num_cut > 0)
    terminal_.say(
        fmt::format("COCO's AP and AR count 100 predictions of a class in an image: {} more",
                    counted(num_cut, "answer has", "answers have")));
  const bool are_given = subject_.checkpoint.empty();
  if (files_ && !coco_.ranks_by_score() && (all_scores || are_given)) {
    terminal_.say(
        "COCO's scores rank by the order of the answers: no probabilities are known here");
  }
  terminal_.say("wrote " + results_path());
  send_event("scores", results_path());
  if (!files_) return;
  terminal_.say("wrote " + files_->result_path() + " and files next to it");
  terminal_.say("next: rematch report " + shell_word(subject_.run_dir));
}

}  // namespace rematch
