#include "mstep/mstep.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "base/text.h"
#include "mstep/loss/loss_table.h"

namespace rematch {
namespace {

// Sums of a window's rows; means are taken once, at the end.
struct WindowSums {
  std::map<std::string, double> scaled;  ///< by kind
  NamedSums details;

  void add(const RowLoss& row, const LossScale& scale) {
    for (const auto& [kind, sum] : row.by_kind) scaled[kind] += sum.sum * scale_of(scale, kind);
    details.add(row.details);
  }
};

void add_losses(const std::vector<LossKind>& kinds, WindowSums& sums, MetricsBag& metrics) {
  double loss = 0;
  for (const LossKind& kind : kinds) {
    metrics.add("loss/" + kind.name, sums.scaled[kind.name]);
    loss += sums.scaled[kind.name];
    if (kind.name == kLabels) continue;
    for (const char* source : {"_prefix", "_tail"}) metrics.add("loss/" + kind.name + source, sums.details.of(kind.name + source).mean());
  }
  metrics.add("loss", loss);
}

bool is_supervised(const RowSupervision& row, const std::vector<LossKind>& kinds) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const LossKind& kind) { return row.by_kind.count(kind.name) > 0; });
}

NonFiniteLoss non_finite(const std::string& error, const std::string& what, const std::vector<const PackedRow*>& rows) {
  std::vector<int64_t> ids;
  std::vector<std::string> where;
  for (const PackedRow* row : rows) {
    for (const auto& segment : row->segments) {
      ids.push_back(segment->sample_id);
      where.push_back(sample_name(segment->sample_id, segment->where));
    }
  }
  return NonFiniteLoss({.error = error,
                        .where = join(where, ", "),
                        .what = what,
                        .fix = "lower training.learning_rate or training.max_grad_norm, inspect these samples, or train with "
                               "model.torch_dtype: float32; the state before this step is saved"},
                       std::move(ids));
}

}  // namespace

std::vector<LossScale> loss_scales(const std::vector<RowSupervision>& rows, LossNormalization normalization, Group& group) {
  std::map<std::string, double> window_counts;
  for (const LossTerm& term : loss_terms()) window_counts.emplace(term.kind, 0.0);  // the same kinds in the same order on every rank
  for (const RowSupervision& row : rows) {
    for (auto& [kind, count] : window_counts) count += static_cast<double>(row.count(kind));
  }
  std::vector<double> totals{static_cast<double>(rows.size())};
  for (const auto& [kind, count] : window_counts) totals.push_back(count);
  group.all_reduce(totals);
  const double num_rows = totals.front();
  size_t next = 1;
  for (auto& [kind, count] : window_counts) count = totals[next++];
  const auto inverse = [](double divisor) { return divisor > 0 ? 1.0 / divisor : 0.0; };
  std::vector<LossScale> scales;
  for (const RowSupervision& row : rows) {
    LossScale& scale = scales.emplace_back();
    for (const auto& [kind, window_count] : window_counts) {
      const auto row_count = static_cast<double>(row.count(kind));
      const bool by_window = normalization == LossNormalization::kWindow;
      scale[kind] = inverse(by_window ? window_count : row_count * num_rows);
    }
  }
  return scales;
}

MStep::MStep(RowModel model, std::vector<ParameterGroup> groups, const AdamWSettings& adamw, const Schedule& schedule, Options options)
    : model_(std::move(model)),
      optimizer_(std::move(groups), adamw),
      float32_gradients_(optimizer_.groups()),
      schedule_(schedule),
      options_(std::move(options)) {}

RowLoss MStep::accumulate(const PackedRow& row, const RowSupervision& supervision, const LossScale& scale, MetricsBag& metrics) {
  RowLoss loss;
  {
    const Span span(metrics, "time/forward_s");
    loss = row_loss(model_.hidden_TH(row), supervision, model_.head, options_.loss, scale);
  }
  // The sums are already on the host; a backward pass from a NaN would only cost time.
  for (const auto& [kind, sum] : loss.by_kind) {
    if (std::isfinite(sum.sum)) continue;
    throw non_finite("the loss is not finite", fmt::format("loss/{}: sum {} over {} tokens", kind, sum.sum, sum.count), {&row});
  }
  const Span span(metrics, "time/backward_s");
  if (loss.total.requires_grad()) torch::autograd::backward({loss.total}, {});
  loss.total.reset();
  return loss;
}

double MStep::clip(const Window& window) {
  float32_gradients_.publish();
  const double norm = clip_grad_norm(optimizer_.groups(), options_.max_grad_norm);
  if (std::isfinite(norm)) return norm;
  std::vector<const PackedRow*> rows;
  for (const PackedRow& row : window.rows) rows.push_back(&row);
  throw non_finite("the gradient is not finite", fmt::format("gradient norm {}", norm), rows);
}

void MStep::run(const Window& window, MetricsBag& metrics) {
  std::vector<RowSupervision> supervision;
  for (const PackedRow& row : window.rows) supervision.push_back(RowSupervision::from(row));
  const std::vector<LossScale> scales = loss_scales(supervision, options_.normalization, *options_.group);

  const std::vector<LossKind> kinds = loss_kinds(options_.loss);
  const double factor = schedule_.factor(optimizer_.num_steps());
  WindowSums sums;
  double norm = 0;
  try {
    for (size_t i = 0; i < window.rows.size(); ++i) {
      if (!is_supervised(supervision[i], kinds)) continue;  // contributes nothing, costs nothing
      std::shared_ptr<void> training;
      if (model_.training_row) training = model_.training_row(optimizer_.num_steps(), static_cast<int64_t>(i));
      sums.add(accumulate(window.rows[i], supervision[i], scales[i], metrics), scales[i]);
    }
    const Span span(metrics, "time/optimizer_s");
    norm = clip(window);
    optimizer_.step(factor);
  } catch (...) {
    float32_gradients_.discard();
    optimizer_.zero_grad();
    throw;
  }
  optimizer_.zero_grad();
  add_losses(kinds, sums, metrics);
  metrics.add("grad_norm", norm);
  metrics.add("learning_rate", options_.learning_rate * factor);
}

RowLoss teacher_forced_loss(const RowModel& model, const PackedRow& row, const LossOptions& options) {
  const at::NoGradGuard no_grad;
  const RowSupervision supervision = RowSupervision::from(row);
  if (!is_supervised(supervision, loss_kinds(options))) return {};
  return row_loss(model.hidden_TH(row), supervision, model.head, options, {});
}

}  // namespace rematch
