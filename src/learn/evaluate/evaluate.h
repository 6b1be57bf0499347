#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/settings/output.h"
#include "engine/ranks/group.h"
#include "learn/estep/roll_out.h"
#include "learn/estep/truth_segments.h"
#include "learn/evaluate/name_collapse.h"
#include "learn/evaluate/score_calibration.h"
#include "learn/mstep/mstep.h"

namespace rematch {

class Terminal;

/// The results of an evaluation.
struct EvaluationResult {
  /// names of BEHAVIOUR 15 and `eval_runtime`, `eval_samples_per_second`
  std::vector<std::pair<std::string, double>> values;
  /// the value of metric_for_best_model, when one is configured
  std::optional<double> metric;
  bool greater_is_better = true;
  std::string eval_set;  ///< eval_set_text() of what was evaluated
  /// one name in place of many, on rank 0; needs rollouts
  std::optional<NameCollapse> collapse = {};
  /// of the scores, on rank 0; needs rollouts with probabilities
  std::optional<ScoreCalibration> calibration = {};
};

/// Evaluation on `val_jsonl`: rollout → parse → match (with answers), teacher-forced loss (with
/// truth). No gradients, no buffer; it does not change training.
class Evaluation {
 public:
  struct Options {
    EvaluationSettings settings;
    int batch_size = 1;  ///< samples per call of the engine or the forward
    /// more IoU gates, for scores such as `eval_rollout_f1_iou50`
    std::vector<double> extra_gates;
    std::string eval_set;     ///< eval_set_text()
    Group* group = &alone();  ///< ranks that share the batches
  };
  /// Computes the teacher-forced loss of one row, without gradients (stage 1).
  using TeacherLoss = std::function<RowLoss(const PackedRow&)>;
  /// Takes every scored rollout, in order (`rematch eval`, `rematch rollout`); may be empty.
  using Visitor = std::function<void(const ScoredRollout&)>;

  /// The engine of the answers, and their scorer.
  struct Answers {
    RolloutScorer scorer;
    RolloutSource source;
  };
  /// The truth of the samples, and its loss.
  struct Truth {
    std::unique_ptr<TruthSegments> segments;
    TeacherLoss loss;
    /// Returns when every rank has called it: for losses that need all ranks; empty: they do not.
    std::function<void()> meet = {};
  };

  /// @param answers  nullopt: no rollouts.
  /// @param truth  nullopt: no teacher-forced loss
  Evaluation(std::optional<Answers> answers, std::optional<Truth> truth, int64_t num_samples,
             Options options);

  /// Evaluates. Every rank gets the result of a single process, bit for bit: whole batches are
  /// distributed, without padding or repetition. Every rank calls it, inside a phase.
  /// @param visit  given on all ranks or on none; called on rank 0, with several ranks after the
  /// last batch
  EvaluationResult run(Terminal& terminal, const Visitor& visit = {});
  int64_t num_samples() const { return num_samples_; }
  const EvaluationSettings& settings() const { return options_.settings; }
  const std::string& eval_set() const { return options_.eval_set; }

 private:
  struct Batch;

  std::vector<SampleBatch> own_batches() const;
  void score_rollouts(Terminal& terminal, const Visitor& visit, std::vector<Batch>& batches) const;
  void measure_truth(Terminal& terminal, std::vector<Batch>& batches) const;
  void visit_all(const std::vector<Batch>& batches, const Visitor& visit) const;
  EvaluationResult reduce(const std::vector<Batch>& batches, double seconds) const;

  std::optional<Answers> answers_;
  std::optional<Truth> truth_;
  int64_t num_samples_;
  Options options_;
};

}  // namespace rematch
