#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ranks/group.h"
#include "estep/estep.h"
#include "mstep/mstep.h"
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
};

/// Evaluation on `val_jsonl`: rollout → parse → match (when an examiner is given), teacher-forced
/// loss (when a teacher is given). No gradients, no buffer; it does not change training.
class Evaluation {
 public:
  struct Options {
    EvaluationSettings settings;
    int batch_size = 1;  ///< samples passed to the engine or the forward together
    /// further IoU gates for `eval_rollout_f1_iou50`-like values (`rematch eval` only)
    std::vector<double> extra_gates;
    Offload* offload = nullptr;  ///< as EStep::Options::offload
    Group* group = &alone();     ///< ranks that take batches of samples in turn
  };
  /// Teacher-forced loss of one row, without gradients (stage 1).
  using TeacherLoss = std::function<RowLoss(const PackedRow&)>;
  /// Called with every examined sample, in order (`rematch eval`, `rematch rollout`); may be empty.
  using Visitor = std::function<void(const Examined&)>;

  /// @param examiner  null: no rollouts. @param teacher  null: no teacher-forced loss
  Evaluation(Examiner* examiner, RolloutEngine* engine, std::unique_ptr<TeacherSource> teacher,
             TeacherLoss teacher_loss, int64_t num_samples, Options options);

  /// The same result on every rank, that of one process to the bit: batches are dealt whole, and
  /// none is padded or repeated.
  /// @param visit  given on all ranks or none; called on rank 0, after the last batch when there
  /// are several. @throws as run_phase()
  EvaluationResult run(Terminal& terminal, const Visitor& visit = {});
  int64_t num_samples() const { return num_samples_; }

 private:
  /// What was observed of a batch; of all batches, in order, it is what one process observes.
  struct Batch {
    MetricsBag rollouts;
    std::vector<MetricsBag> at_gates;
    RowLoss teacher;
    std::vector<Rollout> answers;  ///< for the visitor of rank 0
  };
  void run_rollouts(Terminal& terminal, const Visitor& visit, std::vector<Batch>& batches);
  void run_teacher(Terminal& terminal, std::vector<Batch>& batches);
  int64_t num_batches() const;
  std::vector<int64_t> samples_of(int64_t batch) const;
  void gather(std::vector<Batch>& batches) const;
  void visit_all(const std::vector<Batch>& batches, const Visitor& visit) const;
  void reduce(const std::vector<Batch>& batches, double seconds, EvaluationResult& result) const;

  Examiner* examiner_;
  RolloutEngine* engine_;
  std::unique_ptr<TeacherSource> teacher_;
  TeacherLoss teacher_loss_;
  int64_t num_samples_;
  Options options_;
};

}  // namespace rematch
