#pragma once
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "learn/estep/rollout_scorer.h"
#include "learn/evaluate/breakdown.h"
#include "learn/evaluate/coco.h"
#include "learn/evaluate/score_calibration.h"

namespace rematch {

/// Members that files of answers share: `sample_id`, `width`, `height`, `status`, `predictions`,
/// `scores` where there are any, `ground_truth` and `pairs`.
Json rollout_json(const ScoredRollout& rollout);

/// Files of an evaluation besides its scores, in `RUN_DIR/eval/`.
class EvalFiles {
 public:
  /// @param name  of the files, without ending.
  /// @param labels  the tables have their canonical forms, truth.json and predictions.json their
  /// class names
  /// @param inputs  files that are read
  EvalFiles(const std::string& run_dir, const std::string& name, InputFiles inputs,
            const LabelMatch& labels);

  /// Takes the scored rollout of a sample.
  void add(const ScoredRollout& one);

  /// Adds the tables `per_class` and `per_count`, what follows from scores (add_confidence) and the
  /// names of the other files to the result.
  /// From then on scores are calibrated.
  /// @param found  of `coco`
  /// @param scale  nullopt = raw scores
  void add_to(Json& result, const CocoEvaluator& coco, const CocoResult& found,
              const std::optional<ScoreCalibration>& scale);

  /// Writes NAME.json (the result), NAME.samples.jsonl (truth, answer and pairs of each sample),
  /// NAME.predictions.json (COCO's results format) and NAME.truth.json (the COCO annotations that
  /// the results refer to). Warns when they replace those of another model or of other data.
  /// @throws UserError (environment)
  void write(const Json& result, Terminal& terminal) const;

  /// Path of NAME.json.
  std::string result_path() const { return base_ + ".json"; }

 private:
  std::string base_;
  InputFiles inputs_;
  LabelMatch labels_;
  Breakdown breakdown_;
  struct Answered {
    Sample sample;
    Objects truths, predictions;
    std::vector<double> scores;  ///< of the predictions; empty = none
  };
  std::vector<Answered> answered_;
  std::vector<Json> lines_;  ///< of samples.jsonl
};

}  // namespace rematch
