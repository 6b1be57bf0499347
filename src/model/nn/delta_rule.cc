#include "model/nn/delta_rule.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>
#include <utility>
#include <vector>

#include "base/error.h"
#include "model/nn/batched_product.h"
#include "model/nn/delta_chunks.h"
#include "model/nn/device_kernels.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

at::Tensor transposed_last(const at::Tensor& x) { return x.transpose(-1, -2); }

// Chunks and heads as one batch dimension.
at::Tensor batched(const at::Tensor& x) { return x.flatten(0, 1); }

/// A group of steps.
struct Group {
  int64_t first_step = 0, last_step = 0, first_chunk = 0, num_chunks = 0;
};

// Groups of steps; the backward pass keeps the states before each. Few chunks stay in the caches of
// a CPU, many take few launches on a device.
std::vector<Group> make_groups(const ChunkPlan& plan, const at::Device& device) {
  const int64_t most = uses_device_kernels(device) ? kGroupChunksOnDevices : kGroupChunksOnCpu;
  std::vector<Group> groups;
  for (int64_t step = 0; step < plan.num_steps(); ++step) {
    if (groups.empty() || groups.back().num_chunks + plan.count(step) > most)
      groups.push_back({step, step, plan.begin(step), 0});
    groups.back().last_step = step + 1;
    groups.back().num_chunks += plan.count(step);
  }
  return groups;
}

/// The scan over the steps of one group. States are [segments · N, K, V].
class Scan {
 public:
  Scan(const DeltaInputs& inputs, const DeltaHeads& heads, const ChunkPlan& plan,
       const Group& group)
      : plan_(plan),
        group_(group),
        num_heads_(heads.num_value_heads),
        chunks(inputs, heads, plan, group.first_chunk, group.num_chunks),
        states(at::empty({group.num_chunks, num_heads_, heads.key_dim, heads.value_dim},
                         chunks.u.options())),
        values(chunks.u.clone()) {}

  // Part of a tensor [group chunks, N, ...] that a step handles, as one batch.
  at::Tensor part(const at::Tensor& x, int64_t step) const {
    return batched(x.narrow(0, plan_.begin(step) - group_.first_chunk, plan_.count(step)));
  }
  // Rows of states that enter a step; 0 after the last one.
  int64_t num_live(int64_t step) const {
    return step < plan_.num_steps() ? plan_.count(step) * num_heads_ : 0;
  }
  // Fills `states` and `values`.
  // @param first  before the group.
  // @param final_states  takes those of segments that end in the group; undefined = not wanted
  // @return  the state after the group
  at::Tensor run(const at::Tensor& first, const at::Tensor& final_states) const {
    part(states, group_.first_step).copy_(first);
    at::Tensor after;
    for (int64_t step = group_.first_step; step < group_.last_step; ++step) {
      add_batched_product(part(values, step), part(chunks.w, step), part(states, step), -1);
      const int64_t num_next = num_live(step + 1), num_ended = num_live(step) - num_next;
      if (final_states.defined() && num_ended > 0)
        advance(step, num_next, final_states.narrow(0, num_next, num_ended));
      if (num_next == 0) continue;
      after = step + 1 < group_.last_step
                  ? part(states, step + 1)
                  : at::empty_like(part(states, step).narrow(0, 0, num_next));
      advance(step, 0, after);
    }
    return after;
  }
  // @return  [group chunks, N, C, V]
  at::Tensor outputs() const {
    const at::Tensor sum = batched_product(chunks.q_from_start, states);
    add_batched_product(batched(sum), batched(chunks.attention), batched(values));
    return sum;
  }

 private:
  // The rows of states from `first` on after a step.
  void advance(int64_t step, int64_t first, const at::Tensor& out) const {
    const auto rows = [&](const at::Tensor& x) {
      return part(x, step).narrow(0, first, out.size(0));
    };
    at::Tensor next = out;
    at::mul_out(next, rows(chunks.across), rows(states));
    add_batched_product(next, transposed_last(rows(chunks.k_to_end)), rows(values));
  }

  const ChunkPlan& plan_;
  const Group& group_;
  int64_t num_heads_;

 public:
  const DeltaChunks chunks;
  const at::Tensor states;  ///< [group chunks, N, K, V], before each chunk
  const at::Tensor values;  ///< [group chunks, N, C, V]
};

/// Shapes and kept states of a call; its tensors are saved by autograd.
struct DeltaCall : torch::CustomClassHolder {
  DeltaHeads heads;
  std::shared_ptr<const ChunkPlan> plan;
  bool keeps_states = false;
  std::vector<at::Tensor> states;  ///< before each group
};

// @param state         [segments · N, K, V], before the first step
// @param final_states  the same to fill; undefined = not wanted
at::Tensor run_forward(const DeltaInputs& inputs, DeltaCall& call, at::Tensor state,
                       const at::Tensor& final_states = {}) {
  const ChunkPlan& plan = *call.plan;
  const at::Tensor outputs = at::empty(
      {plan.num_chunks(), ChunkPlan::kChunk, call.heads.num_value_heads, call.heads.value_dim},
      inputs.qkv_TC.options());
  for (const Group& group : make_groups(plan, outputs.device())) {
    if (call.keeps_states) call.states.push_back(state);
    const Scan scan(inputs, call.heads, plan, group);
    state = scan.run(state, final_states);
    outputs.narrow(0, group.first_chunk, group.num_chunks).copy_(scan.outputs().transpose(1, 2));
  }
  return plan.from_chunks(outputs.flatten(0, 1));
}

at::Tensor zero_states(const DeltaCall& call, const at::TensorOptions& options) {
  const DeltaHeads& heads = call.heads;
  const auto num_segments = std::ssize(call.plan->segment_order());
  return at::zeros({num_segments * heads.num_value_heads, heads.key_dim, heads.value_dim},
                   options.dtype(at::kFloat));
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
    const std::vector<Group> groups = make_groups(plan_, g_outputs_.device());
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
    const at::Tensor g_out = split_heads(
        plan_.to_zeroed_chunks(g_outputs_.flatten(1), group.first_chunk, group.num_chunks),
        call_.heads.num_value_heads);
    scan.run(first_state, {});
    const at::Tensor &states = scan.states, &values = scan.values;
    const at::Tensor g_next = at::zeros_like(states),
                     g_values = batched_product(transposed_last(chunks.attention), g_out);
    if (g_state.defined())
      scan.part(g_next, group.last_step - 1).narrow(0, 0, g_state.size(0)).copy_(g_state);
    for (int64_t step = group.last_step; step-- > group.first_step;) {
      const at::Tensor g_after = scan.part(g_next, step), g_step_values = scan.part(g_values, step);
      add_batched_product(g_step_values, scan.part(chunks.k_to_end, step), g_after);
      g_state = step > group.first_step ? scan.part(g_next, step - 1).narrow(0, 0, g_after.size(0))
                                        : at::empty_like(g_after);
      at::mul_out(g_state, scan.part(chunks.across, step), g_after);
      add_batched_product(g_state, transposed_last(scan.part(chunks.q_from_start, step)),
                          scan.part(g_out, step));
      add_batched_product(g_state, transposed_last(scan.part(chunks.w, step)), g_step_values, -1);
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
    return run_forward({qkv, g, beta}, *call, zero_states(*call, qkv.options()));
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
                              at::Tensor* final_states, const at::Tensor& first_states) {
  auto call = c10::make_intrusive<DeltaCall>();
  call->heads = heads;
  call->plan = plan;
  call->keeps_states =
      at::GradMode::is_enabled() && (inputs.qkv_TC.requires_grad() || inputs.g_TN.requires_grad() ||
                                     inputs.beta_TN.requires_grad());
  if (call->keeps_states) {
    REMATCH_CHECK(final_states == nullptr && !first_states.defined(), "states have no gradient");
    return DeltaFunction::apply(inputs.qkv_TC, inputs.g_TN, inputs.beta_TN, call);
  }
  const at::Tensor first =
      first_states.defined() ? batched(first_states) : zero_states(*call, inputs.qkv_TC.options());
  if (final_states == nullptr) return run_forward(inputs, *call, first);
  const at::Tensor states = at::empty_like(first);
  const at::Tensor outputs = run_forward(inputs, *call, first, states);
  *final_states = states.unflatten(0, {-1, heads.num_value_heads});
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
