#include "estep/rollout/native/cpu_parameters.h"

#include <fmt/core.h>

#include "base/error.h"
#include "estep/rollout/native/cpu_pages.h"
#include "model/adapter.h"

namespace rematch {
namespace {

// Smaller matrices stay in the caches, with their page tables.
constexpr int64_t kWorthLargePages = 1 << 20;

}  // namespace

CpuParameters::CpuParameters(const Qwen3VL& model) : model_(model) {
  REMATCH_CHECK(model.device().is_cpu(), model.device().str());
  for (const NamedParameter& parameter : model.parameters()) parameters_[parameter.name] = &parameter;
}

at::Tensor CpuParameters::tensor(const std::string& name) const {
  const auto found = parameters_.find(name);
  REMATCH_CHECK(found != parameters_.end(), name);
  const auto& adapter = model_.adapter();
  return (adapter == nullptr ? found->second->tensor : adapter->merged(*found->second)).detach().contiguous();
}

kernels::Weights CpuParameters::matrix(const std::string& name) {
  const at::Tensor& kept = kept_.emplace_back(tensor(name));
  const auto num_bytes = static_cast<int64_t>(kept.nbytes());
  const bool is_float = kept.scalar_type() == at::kFloat;
  REMATCH_CHECK(kept.dim() >= 2 && (is_float || kept.scalar_type() == at::kBFloat16),
                fmt::format("{} is {} of {} dimensions", name, at::toString(kept.scalar_type()), kept.dim()));
  // A merged matrix does not live long enough.
  const bool is_in_place = kept.is_alias_of(parameters_.at(name)->tensor);
  if (is_in_place && num_bytes >= kWorthLargePages) prefer_large_pages(kept.const_data_ptr(), num_bytes);
  return {.data = kept.const_data_ptr(),
          .storage = is_float ? kernels::Storage::kFloat : kernels::Storage::kBfloat16,
          .num_outputs = kept.size(0),
          .num_inputs = kept.numel() / kept.size(0)};
}

kernels::Weights CpuParameters::linear(const std::string& module) {
  kernels::Weights weights = matrix(module + ".weight");
  const at::Tensor& bias = kept_.emplace_back(tensor(module + ".bias").to(at::kFloat));
  weights.bias = bias.const_data_ptr<float>();
  return weights;
}

std::vector<float> CpuParameters::vector(const std::string& name) const {
  const at::Tensor values = tensor(name).to(at::kFloat).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

}  // namespace rematch
