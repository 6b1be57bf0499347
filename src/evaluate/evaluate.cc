#include "evaluate/evaluate.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>

#include "base/interrupt.h"
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

Evaluation::Evaluation(Examiner* examiner, RolloutEngine* engine, TeacherSource* teacher, TeacherLoss teacher_loss, int64_t num_samples,
                       Options options)
    : examiner_(examiner),
      engine_(engine),
      teacher_(teacher),
      teacher_loss_(std::move(teacher_loss)),
      num_samples_(num_samples),
      options_(std::move(options)) {}

EvaluationResult Evaluation::run(Terminal& terminal, const Visitor& visit) {
  const auto start = std::chrono::steady_clock::now();
  EvaluationResult result;
  result.greater_is_better = options_.settings.greater_is_better;
  if (teacher_ != nullptr) run_teacher(terminal, result);
  if (examiner_ != nullptr) run_rollouts(terminal, visit, result);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  result.values.emplace_back("eval_runtime", seconds);
  result.values.emplace_back("eval_samples_per_second", ratio(static_cast<double>(num_samples_), seconds));
  for (const auto& [name, value] : result.values) {
    if (name == options_.settings.metric_for_best_model) result.metric = value;
  }
  return result;
}

void Evaluation::run_rollouts(Terminal& terminal, const Visitor& visit, EvaluationResult& result) {
  Scores scores;
  std::vector<Scores> extra(options_.extra_gates.size());
  MetricsBag unused;
  const int64_t batch_size = options_.batch_size;
  examiner_->prefetch(chunk(0, batch_size, num_samples_));
  GenerationScope scope(*engine_, options_.offload, kWeightsOfNow);
  for (int64_t begin = 0; begin < num_samples_; begin += batch_size) {
    examiner_->prefetch(chunk(begin + batch_size, batch_size, num_samples_));
    const auto on_progress = [&](int finished) {
      terminal.progress({.phase = "evaluate", .done = begin + finished, .total = num_samples_});
    };
    // Epoch 0 keys the sampling, so that two evaluations of the same weights agree.
    for (const Examined& one : examiner_->examine(chunk(begin, batch_size, num_samples_), 0, unused, on_progress)) {
      scores.add(one, one.matching);
      for (size_t i = 0; i < extra.size(); ++i) extra[i].add(one, match_at_gate(one, examiner_->options().match, options_.extra_gates[i]));
      if (visit) visit(one);
    }
  }
  scope.finish();
  terminal.finish_progress();
  for (auto& value : scores.metrics()) result.values.push_back(std::move(value));
  for (size_t i = 0; i < extra.size(); ++i) {
    const std::string suffix = fmt::format("_iou{:02.0f}", std::round(options_.extra_gates[i] * 100));
    result.values.emplace_back("eval_rollout_precision" + suffix, extra[i].precision());
    result.values.emplace_back("eval_rollout_recall" + suffix, extra[i].recall());
    result.values.emplace_back("eval_rollout_f1" + suffix, extra[i].f1());
    result.values.emplace_back("eval_rollout_matched_maskiou_mean" + suffix, extra[i].matched_maskiou_mean());
  }
}

void Evaluation::run_teacher(Terminal& terminal, EvaluationResult& result) {
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
  result.values.emplace_back("eval_loss", eval_loss);
  result.values.emplace_back("eval_token_acc", total.details.of(kCorrectTokens).mean());
}

}  // namespace rematch
