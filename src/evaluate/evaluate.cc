#include "evaluate/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/interrupt.h"
#include "estep/match/match_policy.h"
#include "observe/catalog.h"
#include "observe/terminal.h"

namespace rematch {
namespace {

double ratio(double part, double whole) { return whole > 0 ? part / whole : 0.0; }

std::vector<int64_t> chunk(int64_t begin, int64_t size, int64_t end) {
  std::vector<int64_t> indices(static_cast<size_t>(std::max<int64_t>(0, std::min(size, end - begin))));
  std::iota(indices.begin(), indices.end(), begin);
  return indices;
}

}  // namespace

Evaluation::Evaluation(Examiner* examiner, RolloutEngine* engine, std::unique_ptr<TeacherSource> teacher, TeacherLoss teacher_loss,
                       int64_t num_samples, Options options)
    : examiner_(examiner),
      engine_(engine),
      teacher_(std::move(teacher)),
      teacher_loss_(std::move(teacher_loss)),
      num_samples_(num_samples),
      options_(std::move(options)) {}

EvaluationResult Evaluation::run(Terminal& terminal, const Visitor& visit) {
  const auto start = std::chrono::steady_clock::now();
  EvaluationResult result;
  result.greater_is_better = options_.settings.greater_is_better;
  MetricsBag metrics;
  std::vector<MetricsBag> at_gates(options_.extra_gates.size());
  if (teacher_ != nullptr) run_teacher(terminal, metrics);
  if (examiner_ != nullptr) run_rollouts(terminal, visit, metrics, at_gates);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  metrics.add("eval_runtime", seconds);
  metrics.add("eval_samples_per_second", ratio(static_cast<double>(num_samples_), seconds));
  result.values = reduce_metrics(metrics, MetricScope::kEvaluation);
  for (size_t i = 0; i < at_gates.size(); ++i) {
    const std::string suffix = fmt::format("_iou{:02.0f}", std::round(options_.extra_gates[i] * 100));
    for (const auto& [name, value] : reduce_metrics(at_gates[i], MetricScope::kGate)) result.values.emplace_back(name + suffix, value);
  }
  for (const auto& [name, value] : result.values) {
    if (name == options_.settings.metric_for_best_model) result.metric = value;
  }
  return result;
}

void Evaluation::run_rollouts(Terminal& terminal, const Visitor& visit, MetricsBag& metrics, std::vector<MetricsBag>& at_gates) {
  const int64_t batch_size = options_.batch_size;
  examiner_->prefetch(chunk(0, batch_size, num_samples_));
  GenerationScope scope(*engine_, options_.offload, kWeightsOfNow);
  for (int64_t begin = 0; begin < num_samples_; begin += batch_size) {
    examiner_->prefetch(chunk(begin + batch_size, batch_size, num_samples_));
    const auto on_progress = [&](int finished) {
      terminal.progress({.phase = "evaluate", .done = begin + finished, .total = num_samples_});
    };
    // Epoch 0 keys the sampling, so that two evaluations of the same weights agree.
    for (const Examined& one : examiner_->examine(chunk(begin, batch_size, num_samples_), 0, metrics, on_progress)) {
      for (size_t i = 0; i < at_gates.size(); ++i) {
        MatchSettings match = examiner_->options().match;
        match.maskiou_gate = options_.extra_gates[i];
        examiner_->observe(one, match_objects(scene_of(one.parsed.objects), one.ground_truth, match), at_gates[i]);
      }
      if (visit) visit(one);
    }
  }
  scope.finish();
  terminal.finish_progress();
}

void Evaluation::run_teacher(Terminal& terminal, MetricsBag& metrics) {
  RowLoss total;
  const int64_t batch_size = options_.batch_size;
  for (int64_t begin = 0; begin < num_samples_; begin += batch_size) {
    throw_if_interrupted();
    PackedRow row;
    for (const int64_t index : chunk(begin, batch_size, num_samples_)) row.segments.push_back(teacher_->segment_at(index, 0));
    const RowLoss loss = teacher_loss_(row);
    total.by_kind.add(loss.by_kind);
    total.details.add(loss.details);
    terminal.progress({.phase = "evaluate", .done = std::min(begin + batch_size, num_samples_), .total = num_samples_});
  }
  terminal.finish_progress();
  double eval_loss = 0;
  for (const auto& [kind, sum] : total.by_kind) eval_loss += sum.mean();
  metrics.add("eval_loss", eval_loss);
  metrics.add("eval_token_acc", total.details.of(kCorrectTokens).mean());
}

}  // namespace rematch
