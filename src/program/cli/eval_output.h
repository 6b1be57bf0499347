#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine/ranks/group.h"
#include "learn/data/dataset.h"
#include "learn/evaluate/coco.h"
#include "learn/evaluate/evaluate.h"
#include "program/cli/eval_files.h"

namespace rematch {

/// The gates at which `rematch eval` scores besides the configured one.
inline const std::vector<double> kExtraGates = {0.3, 0.5};

/// The subject of an evaluation, and the place of its results.
struct Evaluated {
  std::string model;            ///< `model` of the results: a checkpoint, or a file of answers
  std::string name;             ///< names the files, as name_of_evaluated()
  std::string checkpoint;       ///< has or gets the calibration; empty = none
  bool has_own_weights = true;  ///< of `checkpoint`, as it was trained
  /// with the question that `checkpoint` was trained for: it may keep the calibration
  bool has_own_question = true;
  std::string run_dir;
  const Dataset& records;
  InputFiles inputs;
  LabelMatch labels;
  bool has_answers = true;  ///< false: only the loss is measured
};

/// The scores of `rematch eval` on the terminal, in eval_results.json and in the files of
/// RUN_DIR/eval/.
class EvalOutput {
 public:
  /// Makes the run directory, on rank 0. Every rank calls it. Terminal and group must outlive it.
  /// @throws UserError (config) when a file would replace an input
  EvalOutput(Evaluated subject, Terminal& terminal, Group& group = alone());

  /// Takes the scored rollout of a sample, on rank 0.
  void add(const ScoredRollout& rollout);
  /// Writes and prints the results, on rank 0.
  /// @param all_scores  prints every score
  void write(EvaluationResult evaluated, bool all_scores);

 private:
  /// That of the checkpoint; of this evaluation, which a checkpoint of a run then keeps, if it has
  /// none of these weights.
  std::optional<ScoreCalibration> find_calibration(const std::optional<ScoreCalibration>& fitted);
  /// Ends the names of files of other weights, which would replace those of the checkpoint's.
  std::string ending() const { return subject_.has_own_weights ? "" : "-other-weights"; }
  std::string results_path() const {
    return subject_.run_dir + "/eval_results" + ending() + ".json";
  }

  Evaluated subject_;
  Terminal& terminal_;
  CocoEvaluator coco_;
  std::optional<EvalFiles> files_;  ///< nullopt without rollouts, and on other ranks
};

}  // namespace rematch
