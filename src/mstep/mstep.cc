#include "mstep/mstep.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "base/text.h"
#include "ranks/agreement.h"
#include "mstep/loss/loss_table.h"
#include "mstep/row_losses.h"

namespace rematch {
namespace {

// Sums of a window's rows; means are taken once, at the end.
struct WindowSums {
  std::map<std::string, double> scaled;  ///< by kind
  NamedSums details;

  static WindowSums of(const std::vector<ScaledLoss>& rows) {
    WindowSums sums;
    for (const ScaledLoss& row : rows) {
      for (const auto& [kind, value] : row.scaled) sums.scaled[kind] += value;
      sums.details.add(row.details);
    }
    return sums;
  }
};

void add_losses(const std::vector<LossKind>& kinds, WindowSums sums, MetricsBag& metrics) {
  double loss = 0;
  for (const LossKind& kind : kinds) {
    metrics.add("loss/" + kind.name, sums.scaled[kind.name]);
    loss += sums.scaled[kind.name];
    if (kind.name == kLabels) continue;
    for (const char* source : {"_prefix", "_tail"})
      metrics.add("loss/" + kind.name + source, sums.details.of(kind.name + source).mean());
  }
  metrics.add("loss", loss);
}

bool is_supervised(const RowSupervision& row, const std::vector<LossKind>& kinds) {
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](const LossKind& kind) { return row.by_kind.count(kind.name) > 0; });
}

NonFiniteLoss non_finite(const std::string& error, const std::string& what,
                         const std::vector<const PackedRow*>& rows) {
  std::vector<int64_t> ids;
  std::vector<std::string> where;
  for (const PackedRow* row : rows) {
    for (const auto& segment : row->segments) {
      ids.push_back(segment->sample_id);
      where.push_back(sample_name(segment->sample_id, segment->where));
    }
  }
  return NonFiniteLoss(
      {.error = error,
       .where = where.empty() ? "a window without rows on this rank" : join(where, ", "),
       .what = what,
       .fix = "lower training.learning_rate or training.max_grad_norm, inspect these samples, or "
              "train with "
              "model.torch_dtype: float32; the state before this step is saved"},
      std::move(ids));
}

}  // namespace

std::vector<LossScale> loss_scales(const std::vector<RowSupervision>& rows,
                                   LossNormalization normalization, Group& group) {
  std::map<std::string, double> window_counts;
  // the same kinds in the same order on every rank
  for (const LossTerm& term : loss_terms()) window_counts.emplace(term.kind, 0.0);
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

MStep::MStep(RowModel model, std::vector<ParameterGroup> groups, const AdamWSettings& adamw,
             const Schedule& schedule, Options options)
    : options_(std::move(options)),
      groups_(std::move(groups)),
      turns_(options_.group->is_alone() ? nullptr
                                        : std::make_unique<GradientTurns>(groups_, *options_.group,
                                                                          options_.bucket_bytes)),
      model_(std::move(model)),
      optimizer_(is_sharded() ? turns_->owned() : groups_, adamw),
      float32_gradients_(turns_ ? std::vector<ParameterGroup>() : groups_),
      schedule_(schedule) {}

RowLoss MStep::accumulate(const PackedRow& row, const RowSupervision& supervision,
                          const LossScale& scale, MetricsBag& metrics) {
  RowLoss loss;
  {
    const Span span(metrics, "time/forward_s");
    loss = pending_row_loss(model_.hidden_TH(row), supervision, model_.head, options_.loss, scale);
  }
  const Span span(metrics, "time/backward_s");
  if (loss.total.requires_grad()) torch::autograd::backward({loss.total}, {});
  loss.total.reset();
  return loss;
}

// Waits for the device: the forward and backward passes of all rows were only queued.
void MStep::settle_losses(const Window& window, std::vector<RowLoss>& losses) {
  settle(losses);
  for (size_t i = 0; i < losses.size(); ++i) {
    for (const auto& [kind, sum] : losses[i].by_kind) {
      if (std::isfinite(sum.sum)) continue;
      throw non_finite("the loss is not finite",
                       fmt::format("loss/{}: sum {} over {} tokens", kind, sum.sum, sum.count),
                       {&window.rows[i]});
    }
  }
}

int64_t MStep::num_turns(const Window& window) const {
  Group& group = *options_.group;
  std::vector<int64_t> rows(static_cast<size_t>(group.size()), 0);
  rows[static_cast<size_t>(group.rank())] = static_cast<int64_t>(window.rows.size());
  group.all_reduce(rows);
  return *std::max_element(rows.begin(), rows.end());
}

// From the gradients of the whole window to new weights. Returns the gradient's norm, the same on
// every rank.
double MStep::update(const Window& window, double factor) {
  if (turns_) {
    turns_->finish();
  } else {
    float32_gradients_.publish();
  }
  const double norm = turns_ ? turns_->clip(options_.max_grad_norm)
                             : clip_grad_norm(groups_, options_.max_grad_norm);
  if (!std::isfinite(norm)) {
    std::vector<const PackedRow*> rows;
    for (const PackedRow& row : window.rows) rows.push_back(&row);
    throw non_finite("the gradient is not finite", fmt::format("gradient norm {}", norm), rows);
  }
  if (turns_ && !is_sharded()) turns_->share_gradients();
  optimizer_.step(factor);
  if (is_sharded()) turns_->share_values();
  return norm;
}

void MStep::drop_gradients() {
  if (turns_) turns_->discard();
  float32_gradients_.discard();
  for (const ParameterGroup& group : groups_) {
    for (const at::Tensor& parameter : group.parameters) parameter.mutable_grad().reset();
  }
}

void MStep::run(const Window& window, MetricsBag& metrics) {
  Group& group = *options_.group;
  std::vector<RowSupervision> supervision;
  for (const PackedRow& row : window.rows) supervision.push_back(RowSupervision::from(row));
  const std::vector<LossScale> scales = loss_scales(supervision, options_.normalization, group);

  const std::vector<LossKind> kinds = loss_kinds(options_.loss);
  const double factor = schedule_.factor(optimizer_.num_steps());
  std::vector<RowLoss> losses(window.rows.size());
  double norm = 0;
  try {
    Agreement agreement(group);
    const int64_t num_rows = std::ssize(window.rows), end = num_turns(window);
    for (int64_t turn = 0; turn < end; ++turn) {
      const auto i = static_cast<size_t>(turn);
      agreement.attempt([&] {
        // contributes nothing, costs nothing
        if (turn >= num_rows || !is_supervised(supervision[i], kinds)) return;
        std::shared_ptr<void> training;
        if (model_.training_row)
          training =
              model_.training_row(optimizer_.num_steps(), turn * group.size() + group.rank());
        losses[i] = accumulate(window.rows[i], supervision[i], scales[i], metrics);
      });
      if (turns_) turns_->end_turn();
    }
    agreement.attempt([&] {
      const Span span(metrics, "time/backward_s");  // a GPU is waited for here
      settle_losses(window, losses);
    });
    agreement.conclude();
    const Span span(metrics, "time/optimizer_s");
    norm = update(window, factor);
  } catch (...) {
    drop_gradients();
    throw;
  }
  drop_gradients();
  const std::vector<ScaledLoss> all = gather_losses(group, losses, scales);
  if (group.rank() == 0) add_losses(kinds, WindowSums::of(all), metrics);
  metrics.add("grad_norm", norm);
  metrics.add("learning_rate", options_.learning_rate * factor);
}

std::vector<std::pair<std::string, at::Tensor>> MStep::state_to_save() const {
  std::vector<std::pair<std::string, at::Tensor>> state = optimizer_.state();
  if (!turns_ || is_sharded()) return state;
  std::set<std::string> owned;
  for (const ParameterGroup& group : turns_->owned())
    owned.insert(group.names.begin(), group.names.end());
  std::erase_if(state, [&](const auto& entry) {
    return owned.count(entry.first.substr(0, entry.first.rfind('.'))) == 0;
  });
  return state;
}

RowLoss teacher_forced_loss(const RowModel& model, const PackedRow& row,
                            const LossOptions& options) {
  const at::NoGradGuard no_grad;
  const RowSupervision supervision = RowSupervision::from(row);
  if (!is_supervised(supervision, loss_kinds(options))) return {};
  return row_loss(model.hidden_TH(row), supervision, model.head, options, {});
}

}  // namespace rematch
