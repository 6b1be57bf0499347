#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "estep/estep.h"
#include "mstep/mstep.h"
#include "settings/output.h"

namespace rematch {

class Terminal;

/// The results of an evaluation.
struct EvaluationResult {
  std::vector<std::pair<std::string, double>> values;  ///< names of BEHAVIOUR 15 and `eval_runtime`, `eval_samples_per_second`
  std::optional<double> metric;                        ///< the value of metric_for_best_model, when one is configured
  bool greater_is_better = true;
};

/// Evaluation on `val_jsonl`: rollout → parse → match (when an examiner is given), teacher-forced loss (when a teacher is given).
/// No gradients, no buffer; it does not change training.
class Evaluation {
 public:
  struct Options {
    EvaluationSettings settings;
    int batch_size = 1;               ///< samples passed to the engine or the forward together
    std::vector<double> extra_gates;  ///< further IoU gates for `eval_rollout_f1_iou50`-like values (`rematch eval` only)
    Offload* offload = nullptr;       ///< as EStep::Options::offload
  };
  /// Teacher-forced loss of one row, without gradients (stage 1).
  using TeacherLoss = std::function<RowLoss(const PackedRow&)>;
  /// Called with every examined sample, in order (`rematch rollout`); may be empty.
  using Visitor = std::function<void(const Examined&)>;

  /// @param examiner  null: no rollouts. @param teacher  null: no teacher-forced loss
  Evaluation(Examiner* examiner, RolloutEngine* engine, std::unique_ptr<TeacherSource> teacher, TeacherLoss teacher_loss,
             int64_t num_samples, Options options);

  EvaluationResult run(Terminal& terminal, const Visitor& visit = {});
  int64_t num_samples() const { return num_samples_; }

 private:
  void run_rollouts(Terminal& terminal, const Visitor& visit, MetricsBag& metrics, std::vector<MetricsBag>& at_gates);
  void run_teacher(Terminal& terminal, MetricsBag& metrics);

  Examiner* examiner_;
  RolloutEngine* engine_;
  std::unique_ptr<TeacherSource> teacher_;
  TeacherLoss teacher_loss_;
  int64_t num_samples_;
  Options options_;
};

}  // namespace rematch
