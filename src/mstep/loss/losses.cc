#include "mstep/loss/losses.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "base/error.h"
#include "mstep/loss/ce_loss.h"
#include "mstep/loss/coord_loss.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Function;
using torch::autograd::variable_list;

// What the chunks of a row share. Kept alive by the graph, which may outlive row_loss().
struct RowJob {
  LossOptions options;
  std::function<at::Tensor(const at::Tensor&)> head_KV;
  double ce_scale = 1.0;
  double coord_scale = 1.0;
  at::Tensor coord_ids_B;
  RowLoss* sums = nullptr;  ///< where the forward pass adds; null when a chunk is computed again
};

// Positions of one kind that go through the head together.
struct Chunk {
  at::Tensor rows_K;       ///< where the logits are read: one before the supervised token
  at::Tensor targets_K;    ///< labels or bins
  at::Tensor is_prefix_K;  ///< slots only; undefined for cross-entropy
  bool is_ce() const { return !is_prefix_K.defined(); }
};

// Loss of a chunk as a float32 scalar, and its gradient by the logits.
std::pair<at::Tensor, at::Tensor> chunk_value(const at::Tensor& logits_KV, const Chunk& chunk, const RowJob& job, bool needs_grad) {
  const auto options = logits_KV.options().dtype(at::kFloat);
  if (chunk.is_ce()) {
    const CeChunk ce = ce_chunk(logits_KV, chunk.targets_K, job.ce_scale, needs_grad);
    if (job.sums != nullptr) {
      job.sums->ce_sum += ce.sum;
      job.sums->ce_correct_count += ce.correct_count;
    }
    return {at::full({}, ce.sum * job.ce_scale, options), ce.grad_KV};
  }
  const CoordChunk coord =
      coord_chunk(logits_KV, job.coord_ids_B, chunk.targets_K, chunk.is_prefix_K, job.options, job.coord_scale, needs_grad);
  const double sum = coord.weighted_sum[kCoordPrefix] + coord.weighted_sum[kCoordAppend];
  if (job.sums != nullptr) {
    job.sums->coord_sum += sum;
    job.sums->soft_ce_sum += coord.soft_ce_sum;
    job.sums->w1_sum += coord.w1_sum;
    job.sums->gate_sum += coord.gate_sum;
    job.sums->coord_prefix_sum += coord.weighted_sum[kCoordPrefix];
    job.sums->coord_append_sum += coord.weighted_sum[kCoordAppend];
  }
  return {at::full({}, sum * job.coord_scale, options), coord.grad_KV};
}

// Logits → loss with the gradient written down by hand: one [K, V] tensor lives until the backward pass instead of five.
struct LogitsLoss : Function<LogitsLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& logits_KV, const Chunk& chunk, const std::shared_ptr<RowJob>& job,
                            bool needs_grad) {
    auto [value, grad_KV] = chunk_value(logits_KV, chunk, *job, needs_grad);
    if (needs_grad) ctx->save_for_backward({grad_KV});
    return value;
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const at::Tensor grad_KV = ctx->get_saved_variables().front();
    return {grad_KV * grads.front().to(grad_KV.scalar_type()), {}, {}, {}};
  }
};

at::Tensor loss_of_hidden(const at::Tensor& hidden_KH, const Chunk& chunk, const std::shared_ptr<RowJob>& job) {
  const at::Tensor logits_KV = job->head_KV(hidden_KH);
  return LogitsLoss::apply(logits_KV, chunk, job, logits_KV.requires_grad() && at::GradMode::is_enabled());
}

// What a recomputed chunk needs in the backward pass.
struct RecomputeState : torch::CustomClassHolder {
  Chunk chunk;
  std::shared_ptr<RowJob> job;
};

// A chunk whose logits are computed again in the backward pass, so that long rows never hold all of [K, V]. The gradients of the head's own
// parameters are added by the inner backward pass. `anchor` requires grad: the node must exist even when only the head is trained.
struct RecomputedLoss : Function<RecomputedLoss> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& hidden_KH, const at::Tensor& /*anchor*/, const Chunk& chunk,
                            const std::shared_ptr<RowJob>& job) {
    auto state = c10::make_intrusive<RecomputeState>();
    state->chunk = chunk;
    state->job = std::make_shared<RowJob>(*job);
    state->job->sums = nullptr;
    ctx->saved_data["state"] = c10::IValue::make_capsule(state);
    ctx->save_for_backward({hidden_KH});
    return loss_of_hidden(hidden_KH, chunk, job);
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto state = c10::static_intrusive_pointer_cast<RecomputeState>(ctx->saved_data["state"].toCapsule());
    const at::AutoGradMode with_grad(true);
    at::Tensor hidden_KH = ctx->get_saved_variables().front().detach().requires_grad_();
    const at::Tensor value = loss_of_hidden(hidden_KH, state->chunk, state->job);
    torch::autograd::backward({value}, {grads.front()});
    return {hidden_KH.grad(), {}, {}, {}};
  }
};

at::Tensor device_indices(const std::vector<int64_t>& values, size_t begin, size_t end, const at::Device& device) {
  const std::vector<int64_t> part(values.begin() + static_cast<std::ptrdiff_t>(begin), values.begin() + static_cast<std::ptrdiff_t>(end));
  return at::tensor(part, at::kLong).to(device);
}

std::vector<Chunk> make_chunks(const RowSupervision& supervision, int64_t chunk_positions, const at::Device& device) {
  REMATCH_CHECK(chunk_positions > 0, fmt::format("{}", chunk_positions));
  const auto step = static_cast<size_t>(chunk_positions);
  std::vector<Chunk> chunks;
  const auto add = [&](const std::vector<int64_t>& positions, const std::vector<int64_t>& targets, bool is_slot) {
    for (size_t begin = 0; begin < positions.size(); begin += step) {
      const size_t end = std::min(begin + step, positions.size());
      Chunk& chunk = chunks.emplace_back();
      chunk.rows_K = device_indices(positions, begin, end, device).sub_(1);
      chunk.targets_K = device_indices(targets, begin, end, device);
      if (!is_slot) continue;
      at::Tensor is_prefix_K = at::empty({static_cast<int64_t>(end - begin)}, at::kBool);
      for (size_t i = begin; i < end; ++i) is_prefix_K.data_ptr<bool>()[i - begin] = supervision.slot_is_prefix[i];
      chunk.is_prefix_K = is_prefix_K.to(device);
    }
  };
  add(supervision.ce_positions, supervision.ce_labels, false);
  add(supervision.slot_positions, supervision.slot_bins, true);
  return chunks;
}

// Whether anything behind the logits is trained; asks the head only when the hidden states do not tell.
bool needs_graph(const at::Tensor& hidden_TH, const RowJob& job) {
  if (!at::GradMode::is_enabled()) return false;
  return hidden_TH.requires_grad() || job.head_KV(hidden_TH.narrow(0, 0, 1)).requires_grad();
}

void check_supervision(const at::Tensor& hidden_TH, const RowSupervision& s) {
  const int64_t length = hidden_TH.size(0);
  const auto inside = [&](int64_t position) { return position > 0 && position < length; };
  REMATCH_CHECK(s.ce_positions.size() == s.ce_labels.size() && s.slot_positions.size() == s.slot_bins.size() &&
                    s.slot_positions.size() == s.slot_is_prefix.size(),
                fmt::format("{} {} {} {} {}", s.ce_positions.size(), s.ce_labels.size(), s.slot_positions.size(), s.slot_bins.size(),
                            s.slot_is_prefix.size()));
  REMATCH_CHECK(std::all_of(s.ce_positions.begin(), s.ce_positions.end(), inside) &&
                    std::all_of(s.slot_positions.begin(), s.slot_positions.end(), inside),
                fmt::format("row of {} positions", length));
}

}  // namespace

RowLoss row_loss(const at::Tensor& hidden_TH, const RowSupervision& supervision, const std::function<at::Tensor(const at::Tensor&)>& head_KV,
                 const LossOptions& options, double ce_scale, double coord_scale) {
  check_supervision(hidden_TH, supervision);
  const at::Device device = hidden_TH.device();
  RowLoss row;
  auto job = std::make_shared<RowJob>(RowJob{options, head_KV, ce_scale, coord_scale, {}, &row});
  job->coord_ids_B = at::tensor(std::vector<int64_t>(options.coord_token_ids.begin(), options.coord_token_ids.end()), at::kLong).to(device);

  // An empty slice: zero with a graph and without 0 · NaN.
  row.total = hidden_TH.narrow(0, 0, 0).sum(at::kFloat);
  const std::vector<Chunk> chunks = make_chunks(supervision, options.chunk_positions, device);
  const bool recompute = chunks.size() > 2 && needs_graph(hidden_TH, *job);
  const at::Tensor anchor = at::zeros({}, hidden_TH.options()).set_requires_grad(recompute);
  for (const Chunk& chunk : chunks) {
    const at::Tensor hidden_KH = hidden_TH.index_select(0, chunk.rows_K);
    row.total = row.total + (recompute ? RecomputedLoss::apply(hidden_KH, anchor, chunk, job) : loss_of_hidden(hidden_KH, chunk, job));
  }
  job->sums = nullptr;  // the graph may outlive `row`
  row.ce_count = static_cast<int64_t>(supervision.ce_positions.size());
  row.coord_count = static_cast<int64_t>(supervision.slot_positions.size());
  row.coord_prefix_count = std::count(supervision.slot_is_prefix.begin(), supervision.slot_is_prefix.end(), true);
  row.coord_append_count = row.coord_count - row.coord_prefix_count;
  return row;
}

}  // namespace rematch
