#include "engine/rollout/native/cpu/delta.h"

#include <algorithm>
#include <cmath>

#include "model/kernels/rows.h"

namespace rematch {
namespace {

// log(1 + e^x), without overflow.
float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::abs(x))); }

}  // namespace

void CpuDeltaMixer::reserve_rows(int64_t num_rows) {
  if (delta_ == nullptr) return;
  scratch_.projected_T.reserve(num_rows * projected_width());
  scratch_.decay_T.reserve(num_rows * delta_->num_value_heads);
  scratch_.beta_T.reserve(num_rows * delta_->num_value_heads);
}

void CpuDeltaMixer::reserve_workers(int num_workers) {
  if (delta_ != nullptr) scratch_.workers.reserve(num_workers * states_.shape().scratch_floats());
}

void CpuDeltaMixer::mix(const Step& step, const CpuDelta& layer, int64_t layer_idx,
                        const kernels::InterleavedRows& x, const kernels::Rows& out,
                        const kernels::Worker& worker) const {
  const kernels::Range columns =
      worker.share(layer.in.num_outputs, kernels::share_unit(layer.in.num_outputs, worker.count));
  if (columns.size() > 0) kernels::gemm(layer.in, x, projected(0), columns);
  worker.wait();
  const kernels::DeltaShape& shape = states_.shape();
  const int64_t keys = delta_->key_width(), values = shape.group * shape.value_dim;
  // Workers divide the rows of all heads: a head of a sequence belongs to the worker in whose share
  // it begins.
  const kernels::Range share = worker.share(x.num_rows * delta_->num_key_heads);
  for (const StepSequence& sequence : step.sequences) {
    for (int64_t head = 0; head < delta_->num_key_heads; ++head) {
      const int64_t begin = sequence.first_row * delta_->num_key_heads + head * sequence.num_rows;
      if (begin < share.begin || begin >= share.end) continue;
      compute_gates(sequence, layer, head);
      kernels::delta(
          shape,
          {.state = states_.head(layer_idx, sequence.state, head),
           .num_folded = states_.num_folded(sequence),
           .first_position = sequence.num_cached,
           .num_rows = sequence.num_rows,
           .num_known = sequence.num_known(),
           .inputs = {projected(0).row(sequence.first_row), projected_width()},
           .query_column = head * shape.key_dim,
           .key_column = keys + head * shape.key_dim,
           .value_column = 2 * keys + head * values,
           .taps = {layer.taps.data(), delta_->num_channels()},
           .decay = {decay(head * shape.group).row(sequence.first_row), delta_->num_value_heads},
           .beta = {beta(head * shape.group).row(sequence.first_row), delta_->num_value_heads},
           .out = {out.row(sequence.first_row) + head * values, out.stride}},
          scratch_.workers.data() + worker.index * shape.scratch_floats());
      gate_outputs(sequence, layer, head, out);
    }
  }
}

// g = −exp(a_log)·softplus(a + dt_bias) and β = sigmoid(b) of the value heads of a key head.
void CpuDeltaMixer::compute_gates(const StepSequence& sequence, const CpuDelta& layer,
                                  int64_t key_head) const {
  const int64_t group = states_.shape().group, b = delta_->num_channels() + value_width(),
                a = b + delta_->num_value_heads;
  for (int64_t i = 0; i < sequence.num_rows; ++i) {
    const int64_t row = sequence.first_row + i;
    for (int64_t head = key_head * group; head < (key_head + 1) * group; ++head) {
      const auto h = static_cast<size_t>(head);
      *decay(head).row(row) =
          -layer.rate[h] * softplus(*projected(a + head).row(row) + layer.dt_bias[h]);
      *beta(head).row(row) = 1.0f / (1.0f + std::exp(-*projected(b + head).row(row)));
    }
  }
}

// out = norm(out)·silu(z) in each value head of a key head.
void CpuDeltaMixer::gate_outputs(const StepSequence& sequence, const CpuDelta& layer,
                                 int64_t key_head, const kernels::Rows& out) const {
  const kernels::DeltaShape& shape = states_.shape();
  const int64_t values = shape.group * shape.value_dim;
  for (int64_t row = sequence.first_row; row < sequence.first_row + sequence.num_rows; ++row) {
    float* const z = projected(delta_->num_channels() + key_head * values).row(row);
    float* const head_out = out.row(row) + key_head * values;
    for (int64_t head = 0; head < shape.group; ++head) {
      float* const y = head_out + head * shape.value_dim;
      kernels::rms_norm(y, layer.norm.weight.data(), shape.value_dim, layer.norm.eps, y);
    }
    kernels::silu_mul(z, head_out, values);
    std::copy_n(z, values, head_out);
  }
}

}  // namespace rematch
