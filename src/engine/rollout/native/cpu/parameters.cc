#include "engine/rollout/native/cpu/parameters.h"

#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "model/adapter.h"

namespace rematch {
namespace {

constexpr int64_t kMaxWaitingBytes = 64 << 20;

kernels::Storage find_storage(const at::Tensor& tensor) {
  return tensor.scalar_type() == at::kFloat ? kernels::Storage::kFloat
                                            : kernels::Storage::kBfloat16;
}

kernels::Matrix as_matrix(const at::Tensor& tensor, const std::string& name) {
  REMATCH_CHECK(tensor.dim() >= 2 && tensor.is_contiguous() &&
                    (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kBFloat16),
                fmt::format("{} is {} of {} dimensions", name, at::toString(tensor.scalar_type()),
                            tensor.dim()));
  return {.data = tensor.const_data_ptr(),
          .storage = find_storage(tensor),
          .num_outputs = tensor.size(0),
          .num_inputs = tensor.numel() / tensor.size(0)};
}

}  // namespace

CpuParameters::CpuParameters(const Model& model, Tower tower) : model_(model) {
  REMATCH_CHECK(model.device().is_cpu(), model.device().str());
  int64_t most_bytes = 0;
  for (const NamedParameter& parameter : model.parameters()) {
    parameters_[parameter.name] = &parameter;
    const at::Tensor& tensor = parameter.tensor;
    const bool is_text = model.description().part_of(parameter.name) == ParameterPart::kLlm;
    if (tensor.dim() < 2 || is_text != (tower == Tower::kText)) continue;
    most_bytes += kernels::packed_bytes(tensor.size(0), tensor.numel() / tensor.size(0),
                                        find_storage(tensor));
  }
  memory_.packed.reserve(most_bytes);  // unused memory is never touched
}

at::Tensor CpuParameters::tensor(const std::string& name) const {
  const auto found = parameters_.find(name);
  REMATCH_CHECK(found != parameters_.end(), name);
  const auto& adapter = model_.adapter();
  return (adapter == nullptr ? found->second->tensor : adapter->merge(*found->second))
      .detach()
      .contiguous();
}

kernels::PackedWeights CpuParameters::stacked(std::vector<at::Tensor> parts,
                                              const std::string& name) {
  Packing packing;
  packing.tensors = std::move(parts);
  int64_t num_outputs = 0;
  for (const at::Tensor& part : packing.tensors) {
    packing.parts.push_back(as_matrix(part, name));
    num_outputs += packing.parts.back().num_outputs;
  }
  const int64_t num_inputs = packing.parts.front().num_inputs;
  const kernels::Storage storage = packing.parts.front().storage;
  const int64_t num_bytes = kernels::packed_bytes(num_outputs, num_inputs, storage);
  REMATCH_CHECK(num_packed_bytes_ + num_bytes <= memory_.packed.size(), name);
  uint8_t* const data =
      memory_.packed.data() + std::exchange(num_packed_bytes_, num_packed_bytes_ + num_bytes);
  packing.num_panels = kernels::num_panels(num_outputs);
  packing.packed = data;
  waiting_.push_back(std::move(packing));
  num_waiting_bytes_ += num_bytes;
  if (num_waiting_bytes_ > kMaxWaitingBytes) pack_waiting();
  return {.data = data, .storage = storage, .num_outputs = num_outputs, .num_inputs = num_inputs};
}

void CpuParameters::pack_waiting() {
  std::vector<std::pair<const Packing*, int64_t>> panels;
  for (const Packing& packing : waiting_) {
    for (int64_t i = 0; i < packing.num_panels; ++i) panels.emplace_back(&packing, i);
  }
  at::parallel_for(0, std::ssize(panels), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const auto& [packing, panel] = panels[i];
      kernels::pack(packing->parts.data(), static_cast<int>(packing->parts.size()),
                    {panel, panel + 1}, packing->packed);
    }
  });
  waiting_.clear();
  num_waiting_bytes_ = 0;
}

CpuMemory CpuParameters::memory() && {
  pack_waiting();
  return std::move(memory_);
}

kernels::PackedWeights CpuParameters::linear(
    std::initializer_list<const LinearDescription*> parts) {
  std::vector<at::Tensor> matrices, biases;
  for (const LinearDescription* part : parts) {
    matrices.push_back(tensor(part->module + ".weight"));
    if (part->has_bias) biases.push_back(tensor(part->module + ".bias").to(at::kFloat));
  }
  const std::string& name = (*parts.begin())->module;
  kernels::PackedWeights weights = stacked(std::move(matrices), name);
  if (biases.empty()) return weights;
  REMATCH_CHECK(biases.size() == parts.size(), name);
  weights.bias = memory_.tensors.emplace_back(at::cat(biases)).const_data_ptr<float>();
  return weights;
}

kernels::PackedWeights CpuParameters::head() {
  const TextDescription& text = model_.description().text;
  const std::string name = (model_.tied() ? text.embedding : text.head.module) + ".weight";
  return stacked({tensor(name)}, name);
}

kernels::Matrix CpuParameters::matrix(const std::string& name) {
  return as_matrix(memory_.tensors.emplace_back(tensor(name)), name);
}

std::vector<float> CpuParameters::vector(const std::string& name) const {
  const at::Tensor values = tensor(name).to(at::kFloat).contiguous();
  return {values.const_data_ptr<float>(), values.const_data_ptr<float>() + values.numel()};
}

}  // namespace rematch
