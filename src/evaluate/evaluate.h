#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estep/roll_out.h"
#include "estep/truth_segments.h"
#include "mstep/mstep.h"
#include "ranks/group.h"
#include "settings/output.h"

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
};

/// Evaluation on `val_jsonl`: rollout → parse → match (with a scorer), teacher-forced loss (with
/// truth segments). No gradients, no buffer; it does not change training.
class Evaluation {
 public:
  struct Options {
    EvaluationSettings settings;
    int batch_size = 1;  ///< samples per call of the engine or the forward
    /// more IoU gates, for scores such as `eval_rollout_f1_iou50` (`rematch eval` only)
    std::vector<double> extra_gates;
    std::string eval_set;     ///< eval_set_text()
    Group* group = &alone();  ///< ranks that share the batches
  };
  /// Computes the teacher-forced loss of one row, without gradients (stage 1).
  using TeacherLoss = std::function<RowLoss(const PackedRow&)>;
  /// Takes every scored rollout, in order (`rematch eval`, `rematch rollout`); may be empty.
  using Visitor = std::function<void(const ScoredRollout&)>;

  /// @param scorer  null: no rollouts. @param source  set with a scorer. @param truth  null: no
  /// teacher-forced loss
  Evaluation(const RolloutScorer* scorer, std::optional<RolloutSource> source,
             std::unique_ptr<TruthSegments> truth, TeacherLoss teacher_loss, int64_t num_samples,
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

  const RolloutScorer* scorer_;
  std::optional<RolloutSource> source_;
  std::unique_ptr<TruthSegments> truth_;
  TeacherLoss teacher_loss_;
  int64_t num_samples_;
  Options options_;
};

}  // namespace rematch
