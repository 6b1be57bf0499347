#include "learn/mstep/optim/adamw.h"

#include <c10/core/GradMode.h>
#include <fmt/core.h>

#include <map>

#include "base/error.h"
#include "model/nn/device_kernels.h"

namespace rematch {
namespace {

[[noreturn]] void throw_state_error(const std::string& name, const std::string& what) {
  throw data_error(
      {.error = "the optimizer state does not match the model",
       .where = name,
       .what = what,
       .fix = "resume from a checkpoint with the same model and the same frozen parts"});
}

}  // namespace

AdamW::AdamW(std::vector<ParameterGroup> groups, const AdamWSettings& options)
    : groups_(std::move(groups)), options_(options) {
  for (const ParameterGroup& group : groups_) {
    REMATCH_CHECK(
        group.names.size() == group.parameters.size(),
        fmt::format("{}: {} {}", group.name, group.names.size(), group.parameters.size()));
    std::vector<Slot>& slots = slots_.emplace_back();
    for (const at::Tensor& parameter : group.parameters) {
      Slot& slot = slots.emplace_back();
      if (parameter.scalar_type() != at::kFloat) slot.master = parameter.detach().to(at::kFloat);
      slot.exp_avg = at::zeros_like(parameter, at::TensorOptions().dtype(at::kFloat));
      slot.exp_avg_sq = at::zeros_like(slot.exp_avg);
    }
  }
}

struct AdamW::Batch {
  int64_t num_steps = 0;
  std::vector<at::Tensor> masters, grads, exp_avgs, exp_avg_sqs;
  std::vector<at::Tensor> parameters, their_masters;  ///< those with a separate master

  void add(at::Tensor& parameter, Slot& slot) {
    masters.push_back(slot.master.defined() ? slot.master : parameter);
    grads.push_back(parameter.grad().to(at::kFloat).contiguous());
    exp_avgs.push_back(slot.exp_avg);
    exp_avg_sqs.push_back(slot.exp_avg_sq);
    if (!slot.master.defined()) return;
    parameters.push_back(parameter);
    their_masters.push_back(slot.master);
  }
};

// Calls the same operator as torch.optim.AdamW(fused=True): one pass over the memory.
void AdamW::update(Batch& batch, double learning_rate, double weight_decay) const {
  const at::Tensor num_steps = at::scalar_tensor(batch.num_steps, batch.masters[0].options());
  at::_fused_adamw_(batch.masters, batch.grads, batch.exp_avgs, batch.exp_avg_sqs, {},
                    std::vector<at::Tensor>(batch.masters.size(), num_steps), learning_rate,
                    options_.beta1, options_.beta2, weight_decay, options_.epsilon,
                    /*amsgrad=*/false, /*maximize=*/false);
  // The operator does not increment the version of its arguments, but caches of values derived from
  // a weight rely on it.
  for (const at::Tensor& master : batch.masters) master.unsafeGetTensorImpl()->bump_version();
  if (batch.parameters.empty()) return;
  if (uses_device_kernels(batch.parameters[0].device())) {
    at::_foreach_copy_(batch.parameters, batch.their_masters);
  } else {
    for (size_t i = 0; i < batch.parameters.size(); ++i)
      batch.parameters[i].copy_(batch.their_masters[i]);
  }
}

void AdamW::step(double lr_factor) {
  const at::NoGradGuard no_grad;
  ++num_steps_;
  for (size_t g = 0; g < groups_.size(); ++g) {
    std::map<int64_t, Batch> batches;  // by number of updates
    const auto flush = [&] {
      for (auto& [num_steps, batch] : batches) {
        batch.num_steps = num_steps;
        update(batch, groups_[g].learning_rate * lr_factor, groups_[g].weight_decay);
      }
      batches.clear();
    };
    for (size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      at::Tensor& parameter = groups_[g].parameters[i];
      // as in torch, weight decay does not apply either
      if (!parameter.grad().defined()) continue;
      batches[++slots_[g][i].num_steps].add(parameter, slots_[g][i]);
      // One tensor at a time on a CPU, whose operator would gain nothing; all together on a device.
      if (!uses_device_kernels(parameter.device())) flush();
    }
    flush();
  }
}

NamedTensors AdamW::state() const {
  NamedTensors state;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      const std::string& name = groups_[g].names[i];
      const Slot& slot = slots_[g][i];
      if (groups_[g].parameters[i].scalar_type() != at::kFloat)
        state.emplace_back(name + ".master", slot.master);
      state.emplace_back(name + ".exp_avg", slot.exp_avg);
      state.emplace_back(name + ".exp_avg_sq", slot.exp_avg_sq);
      if (slot.num_steps != num_steps_)
        state.emplace_back(name + ".num_steps", at::full({}, slot.num_steps, at::kLong));
    }
  }
  return state;
}

std::vector<at::Tensor> AdamW::tensors() const {
  std::vector<at::Tensor> tensors;
  for (const std::vector<Slot>& group : slots_) {
    for (const Slot& slot : group) {
      if (slot.master.defined()) tensors.push_back(slot.master);
      tensors.push_back(slot.exp_avg);
      tensors.push_back(slot.exp_avg_sq);
    }
  }
  return tensors;
}

void AdamW::load_state(const NamedTensors& state, int64_t num_steps) {
  const at::NoGradGuard no_grad;
  const std::map<std::string, at::Tensor> by_name(state.begin(), state.end());
  const auto fill = [&](const at::Tensor& to, const std::string& name) {
    const auto found = by_name.find(name);
    if (found == by_name.end()) throw_state_error(name, "the state has no such entry");
    if (found->second.sizes() != to.sizes()) {
      throw_state_error(
          name, fmt::format("expected {1} values, found {0}", found->second.numel(), to.numel()));
    }
    to.copy_(found->second);
  };
  num_steps_ = num_steps;
  for (size_t g = 0; g < groups_.size(); ++g) {
    for (size_t i = 0; i < groups_[g].parameters.size(); ++i) {
      const std::string& name = groups_[g].names[i];
      at::Tensor& parameter = groups_[g].parameters[i];
      Slot& slot = slots_[g][i];
      if (parameter.scalar_type() != at::kFloat) {
        fill(slot.master, name + ".master");
        parameter.copy_(slot.master);
      }
      fill(slot.exp_avg, name + ".exp_avg");
      fill(slot.exp_avg_sq, name + ".exp_avg_sq");
      const auto own_steps = by_name.find(name + ".num_steps");
      slot.num_steps = own_steps == by_name.end() ? num_steps : own_steps->second.item<int64_t>();
    }
  }
}

}  // namespace rematch
