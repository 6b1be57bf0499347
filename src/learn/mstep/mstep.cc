#include "learn/mstep/mstep.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "base/text.h"
#include "learn/mstep/loss/loss_table.h"
#include "learn/mstep/loss_watch.h"

namespace rematch {
namespace {

// Sums of a window's rows; means are taken once, at the end.
struct WindowSums {
  std::map<std::string, double> scaled;  ///< by kind
  NamedSums details;

  static WindowSums from(const std::vector<ScaledLoss>& rows) {
    WindowSums sums;
    for (const ScaledLoss& row : rows) {
      for (const auto& [kind, value] : row.scaled) sums.scaled[kind] += value;
      sums.details.add(row.details);
    }
    return sums;
  }
};

std::vector<ScaledLoss> scale_losses(const std::vector<RowLoss>& rows,
                                     const std::vector<LossScale>& scales) {
  std::vector<ScaledLoss> scaled;
  for (size_t i = 0; i < rows.size(); ++i) {
    ScaledLoss& loss = scaled.emplace_back(ScaledLoss{.details = rows[i].details});
    for (const auto& [kind, sum] : rows[i].by_kind)
      loss.scaled[kind] = sum.sum * get_scale(scales[i], kind);
  }
  return scaled;
}

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
  return std::ranges::any_of(
      kinds, [&](const LossKind& kind) { return row.by_kind.count(kind.name) > 0; });
}

// Discards the gradients on every way out of a step, so they take no memory between steps.
class DiscardGradients {
 public:
  explicit DiscardGradients(GradientSum& gradients) : gradients_(gradients) {}
  ~DiscardGradients() { gradients_.discard(); }
  DiscardGradients(const DiscardGradients&) = delete;
  DiscardGradients& operator=(const DiscardGradients&) = delete;

 private:
  GradientSum& gradients_;
};

NonFiniteLoss non_finite(const std::string& error, const std::string& what,
                         const std::vector<const PackedRow*>& rows) {
  Strings where;
  for (const PackedRow* row : rows) {
    for (const auto& segment : row->segments)
      where.push_back(sample_name(segment->sample_id, segment->where));
  }
  return NonFiniteLoss(
      ErrorKind::kData,
      {.error = error,
       .where = where.empty() ? "a window without rows on this rank" : join(where, ", "),
       .what = what,
       .fix = "lower training.learning_rate or training.max_grad_norm, inspect these samples, or "
              "train with model.torch_dtype: float32; the state before this step is saved"});
}

}  // namespace

std::vector<LossScale> loss_scales(const std::vector<RowSupervision>& rows,
                                   LossNormalization normalization,
                                   const std::function<void(std::span<double>)>& sum_counts) {
  std::map<std::string, double> window_counts;
  // All kinds of the table, so that every process sums the same ones in the same order.
  for (const LossTerm& term : loss_terms()) window_counts.emplace(term.kind, 0.0);
  for (const RowSupervision& row : rows) {
    for (auto& [kind, count] : window_counts) count += row.count(kind);
  }
  std::vector<double> totals{static_cast<double>(rows.size())};
  for (const auto& [kind, count] : window_counts) totals.push_back(count);
  sum_counts(totals);

  const double num_rows = totals.front();
  size_t next = 1;
  for (auto& [kind, count] : window_counts) count = totals[next++];
  const auto inverse = [](double divisor) { return divisor > 0 ? 1.0 / divisor : 0.0; };
  std::vector<LossScale> scales;
  for (const RowSupervision& row : rows) {
    LossScale& scale = scales.emplace_back();
    for (const auto& [kind, window_count] : window_counts) {
      const double row_count = row.count(kind);
      const bool by_window = normalization == LossNormalization::kWindow;
      scale[kind] = inverse(by_window ? window_count : row_count * num_rows);
    }
  }
  return scales;
}

MStep::MStep(RowModel model, std::unique_ptr<GradientSum> gradients, const AdamWSettings& adamw,
             const Schedule& schedule, Options options)
    : options_(std::move(options)),
      gradients_(std::move(gradients)),
      model_(std::move(model)),
      optimizer_(gradients_->updated_groups(), adamw),
      schedule_(schedule) {}

RowLoss MStep::train_row(const PackedRow& row, const RowSupervision& supervision,
                         const LossScale& scale, LossWatch& watch, MetricsBag& metrics) {
  RowLoss loss;
  {
    const Span span(metrics, "time/forward_s");
    loss = pending_row_loss(model_.hidden_TH(row), supervision, model_.head, options_.loss, scale);
    watch.add(loss.total);
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

// Returns the norm of the window's gradient before clipping.
double MStep::finish_gradients(const Window& window) {
  const double norm = gradients_->finish(options_.max_grad_norm);
  if (!std::isfinite(norm)) {
    std::vector<const PackedRow*> rows;
    for (const PackedRow& row : window.rows) rows.push_back(&row);
    throw non_finite("the gradient is not finite", fmt::format("gradient norm {}", norm), rows);
  }
  return norm;
}

void MStep::run(const Window& window, MetricsBag& metrics) {
  const std::vector<LossKind> kinds = loss_kinds(options_.loss);
  std::vector<RowSupervision> supervision;
  std::vector<bool> is_trained;  // a row without supervision costs and contributes nothing
  for (const PackedRow& row : window.rows) {
    supervision.push_back(RowSupervision::from(row));
    is_trained.push_back(is_supervised(supervision.back(), kinds));
  }
  const std::vector<LossScale> scales =
      loss_scales(supervision, options_.normalization,
                  [&](std::span<double> counts) { gradients_->sum_counts(counts); });
  const double factor = schedule_.factor(optimizer_.num_steps());
  std::vector<RowLoss> losses(window.rows.size());
  std::optional<std::vector<ScaledLoss>> all;
  double norm = 0;
  {
    const DiscardGradients at_end(*gradients_);
    LossWatch watch;
    gradients_->begin(is_trained);
    for (size_t i = 0; i < window.rows.size(); ++i) {
      if (is_trained[i]) {
        const RowScope training =
            model_.training_row
                ? model_.training_row(optimizer_.num_steps(),
                                      gradients_->window_index(static_cast<int64_t>(i)))
                : RowScope();
        losses[i] = train_row(window.rows[i], supervision[i], scales[i], watch, metrics);
        if (watch.sees_non_finite()) settle_losses(window, losses);  // throws
      }
      gradients_->end_row();
    }
    {
      const Span span(metrics, "time/backward_s");  // waits for a GPU
      settle_losses(window, losses);
    }
    const Span span(metrics, "time/optimizer_s");
    norm = finish_gradients(window);
    all = gradients_->gather_losses(scale_losses(losses, scales));
    // Last, because it is the first call that changes a weight.
    gradients_->update([&] { optimizer_.step(factor); });
  }

  if (all) add_losses(kinds, WindowSums::from(*all), metrics);
  metrics.add("grad_norm", norm);
  metrics.add("learning_rate", options_.learning_rate * factor);
}

NamedTensors MStep::state_to_save() const {
  std::set<std::string> owned;
  for (const ParameterGroup& group : gradients_->owned_groups())
    owned.insert(group.names.begin(), group.names.end());
  NamedTensors state = optimizer_.state();
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
