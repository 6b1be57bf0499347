#include "model/nn/checkpoint.h"

#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/autograd/functions/accumulate_grad.h>

#include <algorithm>
#include <unordered_set>
#include <utility>

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// The leaves that require grad in the graph of `outputs`, each once, in an order that depends only
// on the graph.
std::vector<at::Tensor> graph_leaves(const variable_list& outputs) {
  std::vector<at::Tensor> leaves;
  std::vector<torch::autograd::Node*> open;
  for (const at::Tensor& output : outputs) open.push_back(output.grad_fn().get());
  std::unordered_set<torch::autograd::Node*> seen{nullptr};
  while (!open.empty()) {
    torch::autograd::Node* node = open.back();
    open.pop_back();
    if (!seen.insert(node).second) continue;
    if (const auto* leaf = dynamic_cast<torch::autograd::AccumulateGrad*>(node))
      leaves.push_back(leaf->variable);
    for (const torch::autograd::Edge& edge : node->next_edges())
      open.push_back(edge.function.get());
  }
  return leaves;
}

// State of the backward pass, in addition to the inputs.
struct BlockState : torch::CustomClassHolder {
  TwoPassBlock block;
  variable_list outputs;  ///< of the first run, until they are returned
  variable_list fixed;    ///< those of them without a gradient
  size_t num_inputs = 0;
};

// Copies of the inputs that are leaves of a new graph.
variable_list detach_inputs(const variable_list& inputs, size_t count) {
  variable_list leaves;
  for (size_t i = 0; i < count; ++i)
    leaves.push_back(inputs[i].detach().requires_grad_(inputs[i].requires_grad()));
  return leaves;
}

struct Checkpointed : torch::autograd::Function<Checkpointed> {
  /// @param all  the block's inputs, then the leaves it trains
  static variable_list forward(AutogradContext* ctx, at::TensorList all,
                               const c10::intrusive_ptr<BlockState>& state) {
    ctx->save_for_backward(all.vec());
    ctx->saved_data["state"] = c10::IValue::make_capsule(state);
    ctx->mark_non_differentiable(std::exchange(state->fixed, {}));
    return std::exchange(state->outputs, {});
  }
  static variable_list backward(AutogradContext* ctx, variable_list grads) {
    const auto state =
        c10::static_intrusive_pointer_cast<BlockState>(ctx->saved_data["state"].toCapsule());
    const variable_list all = ctx->get_saved_variables();
    variable_list inputs = detach_inputs(all, state->num_inputs), wanted, outputs, output_grads;
    {
      const at::AutoGradMode with_grad(true);
      variable_list results = state->block(inputs, Results::kUnread);
      for (size_t i = 0; i < results.size(); ++i) {
        if (!results[i].requires_grad()) continue;
        outputs.push_back(std::move(results[i]));
        output_grads.push_back(std::move(grads[i]));
      }
    }
    for (size_t i = 0; i < all.size(); ++i) {
      if (i >= state->num_inputs)
        wanted.push_back(all[i]);
      else if (inputs[i].requires_grad())
        wanted.push_back(inputs[i]);
    }
    variable_list found =
        torch::autograd::grad(outputs, wanted, output_grads, /*retain_graph=*/false,
                              /*create_graph=*/false, /*allow_unused=*/true);
    variable_list gradients;
    size_t next = 0;
    for (size_t i = 0; i < all.size(); ++i) {
      const bool is_wanted = i >= state->num_inputs || inputs[i].requires_grad();
      gradients.push_back(is_wanted ? std::move(found[next++]) : at::Tensor());
    }
    gradients.emplace_back();  // of state
    return gradients;
  }
};

}  // namespace

at::Tensor run_checkpointed(const Block& block, const std::vector<at::Tensor>& inputs) {
  const TwoPassBlock with_one_result = [block](const variable_list& given, Results) {
    return variable_list{block(given)};
  };
  return run_checkpointed(with_one_result, inputs).front();
}

std::vector<at::Tensor> run_checkpointed(const TwoPassBlock& block,
                                         const std::vector<at::Tensor>& inputs) {
  if (!at::GradMode::is_enabled()) return block(inputs, Results::kRead);
  auto state = c10::make_intrusive<BlockState>();
  variable_list all = inputs;
  {
    // Builds a graph only to find out which parameters the block uses and which inputs need a
    // gradient; the graph is discarded at once.
    const variable_list cut = detach_inputs(inputs, inputs.size());
    variable_list outputs = block(cut, Results::kRead), trained;
    for (const at::Tensor& output : outputs) {
      state->outputs.push_back(output.detach());
      if (output.requires_grad())
        trained.push_back(output);
      else
        state->fixed.push_back(state->outputs.back());
    }
    if (trained.empty()) return outputs;
    for (const at::Tensor& leaf : graph_leaves(trained)) {
      const bool is_input =
          std::ranges::any_of(cut, [&](const at::Tensor& input) { return input.is_same(leaf); });
      if (!is_input) all.push_back(leaf);
    }
  }
  state->block = block;
  state->num_inputs = inputs.size();
  return Checkpointed::apply(at::TensorList(all), state);
}

}  // namespace rematch
