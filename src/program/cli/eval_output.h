#pragma once
#include <optional>
#include <string>

#include "learn/evaluate/coco.h"
#include "learn/evaluate/evaluate.h"
#include "program/assembly/job.h"
#include "program/cli/eval_files.h"

namespace rematch {

/// The scores of `rematch eval` on the terminal, in eval_results.json and in the files of
/// RUN_DIR/eval/.
class EvalOutput {
 public:
  /// Makes the run directory, on rank 0. Every rank calls it. The job must outlive it.
  /// @throws UserError (config) when a file would replace an input
  explicit EvalOutput(const Job& job);

  /// Takes the scored rollout of a sample, on rank 0.
  void add(const ScoredRollout& rollout);
  /// Writes and prints the results, on rank 0.
  /// @param all_scores  prints every score
  void write(EvaluationResult evaluated, bool all_scores);

 private:
  /// That of the checkpoint; of this evaluation, which the checkpoint then keeps, if it has none.
  std::optional<ScoreCalibration> find_calibration(const std::optional<ScoreCalibration>& fitted);

  const Job& job_;
  InputFiles inputs_;
  LabelMatch labels_;
  CocoEvaluator coco_;
  std::optional<EvalFiles> files_;  ///< nullopt without rollouts, and on other ranks
};

}  // namespace rematch
