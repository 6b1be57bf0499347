#include "model/nn/delta_rule.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/nn/batched_product.h"
#include "model/nn/delta_chunks.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Chunks that are prepared together, unless a step has more; the backward pass keeps the states
// before each such group of steps.
constexpr int64_t kGroupChunks = 8;

at::Tensor transposed_last(const at::Tensor& x) { return x.transpose(-1, -2); }

// Chunks and heads as one batch dimension.
at::Tensor batched(const at::Tensor& x) { return x.flatten(0, 1); }

/// A group of steps.
struct Group {
  int64_t first_step = 0, last_step = 0, first_chunk = 0, num_chunks = 0;
};

std::vector<Group> make_groups(const ChunkPlan& plan) {
  std::vector<Group> groups;
  for (int64_t step = 0; step < plan.num_steps(); ++step) {
    if (groups.empty() || groups.back().num_chunks + plan.count(step) > kGroupChunks)
      groups.push_back({step, step, plan.begin(step), 0});
    groups.back().last_step = step + 1;
    groups.back().num_chunks += plan.count(step);
  }
  return groups;
}

/// The scan over the steps of one group.
class Scan {
 public:
  Scan(const DeltaInputs& inputs, const DeltaHeads& heads, const ChunkPlan& plan,
       const Group& group)
      : plan_(plan),
        group_(group),
        num_heads_(heads.num_value_heads),
        chunks(inputs, heads, plan, group.first_chunk, group.num_chunks) {}

  // Part of a tensor [group chunks, N, ...] that a step handles, as one batch.
  at::Tensor part(const at::Tensor& x, int64_t step) const {
    return batched(x.narrow(0, plan_.begin(step) - group_.first_chunk, plan_.count(step)));
  }
  // Drops the states of segments that have ended.
  at::Tensor live(const at::Tensor& state, int64_t step) const {
    return state.narrow(0, 0, plan_.count(step) * num_heads_);
  }
  at::Tensor new_values(const at::Tensor& state, int64_t step) const {
    return add_batched_product(part(chunks.u, step).clone(), part(chunks.w, step), state, -1);
  }
  at::Tensor outputs(const at::Tensor& state, const at::Tensor& values, int64_t step) const {
    return add_batched_product(batched_product(part(chunks.q_from_start, step), state),
                               part(chunks.attention, step), values);
  }
  at::Tensor next(const at::Tensor& state, const at::Tensor& values, int64_t step) const {
    return add_batched_product(part(chunks.across, step) * state,
                               transposed_last(part(chunks.k_to_end, step)), values);
  }

 private:
  const ChunkPlan& plan_;
  const Group& group_;
  int64_t num_heads_;

 public:
  const DeltaChunks chunks;
};

/// Shapes and kept states of a call; its tensors are saved by autograd.
struct DeltaCall : torch::CustomClassHolder {
  DeltaHeads heads;
  std::shared_ptr<const ChunkPlan> plan;
  bool keeps_states = false;
  std::vector<at::Tensor> states;  ///< before each group
};

at::Tensor empty_states(const DeltaCall& call, int64_t num_segments,
                        const at::TensorOptions& options) {
  const DeltaHeads& heads = call.heads;
  return at::zeros({num_segments * heads.num_value_heads, heads.key_dim, heads.value_dim},
                   options.dtype(at::kFloat));
}

// @param final_states  [segments · N, K, V] to fill; undefined = not wanted
at::Tensor run_forward(const DeltaInputs& inputs, DeltaCall& call,
                       const at::Tensor& final_states = {}) {
  const ChunkPlan& plan = *call.plan;
  const int64_t num_heads = call.heads.num_value_heads, value_dim = call.heads.value_dim;
  const auto num_segments = static_cast<int64_t>(plan.segment_order().size());
  at::Tensor outputs = at::empty({plan.num_chunks(), ChunkPlan::kChunk, num_heads, value_dim},
                                 inputs.qkv_TC.options());
  at::Tensor state = empty_states(call, num_segments, inputs.qkv_TC.options());
  const auto keep_final = [&](int64_t first_row) {
    const int64_t count = state.size(0) - first_row;
    if (final_states.defined())
      final_states.narrow(0, first_row, count).copy_(state.narrow(0, first_row, count));
  };
  for (const Group& group : make_groups(plan)) {
    if (call.keeps_states) call.states.push_back(state);
    const Scan scan(inputs, call.heads, plan, group);
    for (int64_t step = group.first_step; step < group.last_step; ++step) {
      keep_final(plan.count(step) * num_heads);
      state = scan.live(state, step);
      const at::Tensor values = scan.new_values(state, step);
      outputs.narrow(0, plan.begin(step), plan.count(step))
          .copy_(scan.outputs(state, values, step)
                     .unflatten(0, {plan.count(step), num_heads})
                     .transpose(1, 2));
      state = scan.next(state, values, step);
    }
  }
  keep_final(0);
  return plan.from_chunks(outputs.flatten(0, 1));
}

/// Gradients of all chunks, filled group by group from the last.
class Backward {
 public:
  Backward(const DeltaInputs& inputs, const DeltaCall& call, const at::Tensor& g_outputs)
      : inputs_(inputs), call_(call), plan_(*call.plan), g_outputs_(g_outputs) {
    const auto slots = [&](const at::Tensor& rows) {
      std::vector<int64_t> sizes = rows.sizes().vec();
      sizes[0] = ChunkPlan::kChunk;
      sizes.insert(sizes.begin(), plan_.num_chunks());
      return at::empty(sizes, rows.options());
    };
    g_qkv_ = slots(inputs.qkv_TC);
    g_decay_ = slots(inputs.g_TN);
    g_beta_ = slots(inputs.beta_TN);
  }

  variable_list run() {
    at::Tensor g_state;
    const std::vector<Group> groups = make_groups(plan_);
    for (size_t i = groups.size(); i-- > 0;)
      g_state = run_group(groups[i], call_.states[i], g_state);
    const auto rows = [&](const at::Tensor& slots) {
      return plan_.from_chunks(slots.flatten(0, 1));
    };
    return {rows(g_qkv_), rows(g_decay_), rows(g_beta_), at::Tensor()};
  }

 private:
  // Runs a group again from its state, then backwards. Returns the gradient of that state.
  // @param g_state  of the state after the group; undefined = zeros
  at::Tensor run_group(const Group& group, const at::Tensor& first_state, at::Tensor g_state) {
    const Scan scan(inputs_, call_.heads, plan_, group);
    const DeltaChunks& chunks = scan.chunks;
    const DeltaHeads& heads = call_.heads;
    const at::Tensor g_out = split_heads(
        plan_.to_zeroed_chunks(g_outputs_.flatten(1), group.first_chunk, group.num_chunks),
        heads.num_value_heads);
    const std::vector<int64_t> state_sizes{group.num_chunks, heads.num_value_heads, heads.key_dim,
                                           heads.value_dim};
    const at::Tensor states = at::empty(state_sizes, chunks.u.options()),
                     g_next = at::empty(state_sizes, chunks.u.options()),
                     values = at::empty_like(chunks.u), g_values = at::empty_like(chunks.u);
    at::Tensor state = first_state;
    for (int64_t step = group.first_step; step < group.last_step; ++step) {
      state = scan.live(state, step);
      scan.part(states, step).copy_(state);
      const at::Tensor step_values = scan.new_values(state, step);
      scan.part(values, step).copy_(step_values);
      state = scan.next(state, step_values, step);
    }
    for (int64_t step = group.last_step; step-- > group.first_step;) {
      at::Tensor g_after = scan.part(g_next, step).zero_();
      if (g_state.defined()) g_after.narrow(0, 0, g_state.size(0)).copy_(g_state);
      const at::Tensor g_step_values =
          add_batched_product(batched_product(transposed_last(scan.part(chunks.attention, step)),
                                              scan.part(g_out, step)),
                              scan.part(chunks.k_to_end, step), g_after);
      scan.part(g_values, step).copy_(g_step_values);
      g_state = add_batched_product(
          add_batched_product(scan.part(chunks.across, step) * g_after,
                              transposed_last(scan.part(chunks.q_from_start, step)),
                              scan.part(g_out, step)),
          transposed_last(scan.part(chunks.w, step)), g_step_values, -1);
    }
    store(group,
          chunk_gradients(chunks, {.u = g_values,
                                   .w = batched_product(g_values, transposed_last(states)).neg_(),
                                   .q_from_start = batched_product(g_out, transposed_last(states)),
                                   .k_to_end = batched_product(values, transposed_last(g_next)),
                                   .attention = batched_product(g_out, transposed_last(values)),
                                   .across = (states * g_next).sum({-2, -1}, /*keepdim=*/true)}));
    return g_state;
  }

  void store(const Group& group, const DeltaInputGradients& found) {
    g_qkv_.narrow(0, group.first_chunk, group.num_chunks).copy_(found.qkv);
    g_decay_.narrow(0, group.first_chunk, group.num_chunks).copy_(found.g);
    g_beta_.narrow(0, group.first_chunk, group.num_chunks).copy_(found.beta);
  }

  const DeltaInputs& inputs_;
  const DeltaCall& call_;
  const ChunkPlan& plan_;
  const at::Tensor& g_outputs_;
  at::Tensor g_qkv_, g_decay_, g_beta_;  ///< [chunks, C, ...]
};

struct DeltaFunction : torch::autograd::Function<DeltaFunction> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& qkv, const at::Tensor& g,
                            const at::Tensor& beta, const c10::intrusive_ptr<DeltaCall>& call) {
    context->save_for_backward({qkv, g, beta});
    context->saved_data["call"] = c10::IValue::make_capsule(call);
    return run_forward({qkv, g, beta}, *call);
  }
  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const auto call =
        c10::static_intrusive_pointer_cast<DeltaCall>(context->saved_data["call"].toCapsule());
    const DeltaInputs inputs{saved[0], saved[1], saved[2]};
    return Backward(inputs, *call, gradients[0]).run();
  }
};

}  // namespace

at::Tensor chunked_delta_rule(const DeltaInputs& inputs, const DeltaHeads& heads,
                              const std::shared_ptr<const ChunkPlan>& plan,
                              at::Tensor* final_states) {
  auto call = c10::make_intrusive<DeltaCall>();
  call->heads = heads;
  call->plan = plan;
  call->keeps_states =
      at::GradMode::is_enabled() && (inputs.qkv_TC.requires_grad() || inputs.g_TN.requires_grad() ||
                                     inputs.beta_TN.requires_grad());
  if (call->keeps_states) {
    REMATCH_CHECK(final_states == nullptr, "states have no gradient");
    return DeltaFunction::apply(inputs.qkv_TC, inputs.g_TN, inputs.beta_TN, call);
  }
  if (final_states == nullptr) return run_forward(inputs, *call);
  const auto num_segments = static_cast<int64_t>(plan->segment_order().size());
  const at::Tensor states = empty_states(*call, num_segments, inputs.qkv_TC.options());
  const at::Tensor outputs = run_forward(inputs, *call, states);
  *final_states = states.unflatten(0, {num_segments, heads.num_value_heads});
  return outputs;
}

at::Tensor delta_rule_step(const DeltaInputs& inputs, const DeltaHeads& heads,
                           const at::Tensor& state_BNKV) {
  const int64_t key_width = heads.key_width(),
                repeats = heads.num_value_heads / heads.num_key_heads;
  const auto key_heads = [&](int64_t begin) {
    const L2Normalised normalised(inputs.qkv_TC.narrow(1, begin, key_width)
                                      .unflatten(1, {heads.num_key_heads, heads.key_dim})
                                      .to(at::kFloat));
    return repeats == 1 ? normalised.value : normalised.value.repeat_interleave(repeats, 1);
  };
  const at::Tensor q_BN1K =
      (key_heads(0) / std::sqrt(static_cast<double>(heads.key_dim))).unsqueeze(-2);
  const at::Tensor k_BN1K = key_heads(key_width).unsqueeze(-2);
  const at::Tensor v_BN1V =
      inputs.qkv_TC.narrow(1, 2 * key_width, inputs.qkv_TC.size(1) - 2 * key_width)
          .unflatten(1, {heads.num_value_heads, heads.value_dim})
          .to(at::kFloat)
          .unsqueeze(-2);
  state_BNKV.mul_(inputs.g_TN.exp().unsqueeze(-1).unsqueeze(-1));
  const at::Tensor delta =
      (v_BN1V - at::matmul(k_BN1K, state_BNKV)) * inputs.beta_TN.unsqueeze(-1).unsqueeze(-1);
  state_BNKV.add_(transposed_last(k_BN1K) * delta);
  return at::matmul(q_BN1K, state_BNKV).squeeze(-2).to(inputs.qkv_TC.scalar_type());
}

}  // namespace rematch
