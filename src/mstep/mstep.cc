#include "mstep/mstep.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "base/text.h"

namespace rematch {
namespace {

// Sums of a window's rows; means are taken once, at the end.
struct WindowSums {
  double loss = 0, ce = 0, coord = 0;  ///< already scaled
  double coord_prefix_sum = 0, coord_append_sum = 0;
  int64_t coord_prefix_count = 0, coord_append_count = 0;

  void add(const RowLoss& row, const LossScale& scale) {
    ce += row.ce_sum * scale.ce;
    coord += row.coord_sum * scale.coord;
    loss = ce + coord;
    coord_prefix_sum += row.coord_prefix_sum;
    coord_append_sum += row.coord_append_sum;
    coord_prefix_count += row.coord_prefix_count;
    coord_append_count += row.coord_append_count;
  }
};

double share(double sum, int64_t count) { return count > 0 ? sum / static_cast<double>(count) : 0.0; }

void add_losses(const WindowSums& sums, MetricsBag& metrics) {
  metrics.add("loss", sums.loss);
  metrics.add("loss/ce", sums.ce);
  metrics.add("loss/coord", sums.coord);
  metrics.add("loss/coord_prefix", share(sums.coord_prefix_sum, sums.coord_prefix_count));
  metrics.add("loss/coord_tail", share(sums.coord_append_sum, sums.coord_append_count));
}

bool is_supervised(const RowSupervision& supervision) { return !supervision.ce_positions.empty() || !supervision.slot_positions.empty(); }

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
                        .fix = "lower training.learning_rate or training.max_grad_norm, look at these samples, or train with "
                               "model.torch_dtype: float32; the state before this step was saved"},
                       std::move(ids));
}

}  // namespace

LossNormalization loss_normalization(const std::string& name) {
  if (name == "window") return LossNormalization::kWindow;
  if (name == "row") return LossNormalization::kRow;
  throw UserError(ErrorKind::kConfig, {.error = fmt::format("unknown loss normalization \"{}\"", name),
                                       .where = "loss_normalization",
                                       .what = "known: window, row",
                                       .fix = "choose window (the default) or row"});
}

std::vector<LossScale> loss_scales(const std::vector<RowSupervision>& rows, LossNormalization normalization, Group& group) {
  const auto inverse = [](double divisor) { return divisor > 0 ? 1.0 / divisor : 0.0; };
  std::array<double, 3> totals{0, 0, static_cast<double>(rows.size())};
  for (const RowSupervision& row : rows) {
    totals[0] += static_cast<double>(row.ce_positions.size());
    totals[1] += static_cast<double>(row.slot_positions.size());
  }
  group.all_reduce(totals);
  const auto [num_ce, num_slots, num_rows] = totals;
  std::vector<LossScale> scales;
  for (const RowSupervision& row : rows) {
    if (normalization == LossNormalization::kWindow) {
      scales.push_back({inverse(num_ce), inverse(num_slots)});
    } else {
      scales.push_back({inverse(static_cast<double>(row.ce_positions.size()) * num_rows),
                        inverse(static_cast<double>(row.slot_positions.size()) * num_rows)});
    }
  }
  return scales;
}

MStep::MStep(RowModel model, std::vector<ParameterGroup> groups, const AdamWOptions& adamw, const Schedule& schedule, Options options)
    : model_(std::move(model)),
      optimizer_(std::move(groups), adamw),
      float32_gradients_(optimizer_.groups()),
      schedule_(schedule),
      options_(std::move(options)) {}

RowLoss MStep::accumulate(const PackedRow& row, const RowSupervision& supervision, const LossScale& scale, MetricsBag& metrics) {
  RowLoss loss;
  {
    const Span span(metrics, "time/forward_s");
    loss = row_loss(model_.hidden_TH(row), supervision, model_.head_KV, options_.loss, scale.ce, scale.coord);
  }
  // The sums are on the host already; a backward pass from a NaN would only cost time.
  if (!std::isfinite(loss.ce_sum) || !std::isfinite(loss.coord_sum)) {
    throw non_finite("the loss is not finite",
                     fmt::format("cross-entropy sum {}, coordinate sum {} over {} and {} tokens", loss.ce_sum, loss.coord_sum,
                                 loss.ce_count, loss.coord_count),
                     {&row});
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

  const double factor = schedule_.factor(optimizer_.num_steps());
  WindowSums sums;
  double norm = 0;
  try {
    for (size_t i = 0; i < window.rows.size(); ++i) {
      if (!is_supervised(supervision[i])) continue;  // contributes nothing, costs nothing
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
  add_losses(sums, metrics);
  metrics.add("grad_norm", norm);
  metrics.add("learning_rate", options_.learning_rate * factor);
}

RowLoss teacher_forced_loss(const RowModel& model, const PackedRow& row, const LossOptions& options) {
  const at::NoGradGuard no_grad;
  const RowSupervision supervision = RowSupervision::from(row);
  if (!is_supervised(supervision)) return {};
  return row_loss(model.hidden_TH(row), supervision, model.head_KV, options, 1.0, 1.0);
}

}  // namespace rematch
