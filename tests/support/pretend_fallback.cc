// Every operator without a kernel of the device's own: the CPU's kernel on the device's memory, in
// place and without a copy.
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "support/pretend_memory.h"

namespace rematch::test {
namespace {

/// A tensor of the device that a kernel is given, and what stands for it there.
struct Lent {
  at::Tensor own;
  at::Tensor host;
};

bool is_ours(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kPretend;
}

template <class Look>
void for_tensors(const c10::IValue& value, const Look& look) {
  if (value.isTensor()) look(value.toTensor());
  if (value.isTensorList()) {
    for (const at::Tensor& tensor : value.toTensorVector()) look(tensor);
  }
  if (value.isOptionalTensorList()) {
    for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
      if (tensor) look(*tensor);
    }
  }
}

// As on CUDA: a number that became a tensor may be combined with tensors of the device, and in an
// operator that works element by element so may a scalar of the CPU; everything else must be on the
// device.
void refuse_mixed(const c10::OperatorHandle& op, const std::vector<c10::IValue>& arguments) {
  const bool is_pointwise = op.hasTag(at::Tag::pointwise);
  bool ours = false, others = false;
  for (const c10::IValue& argument : arguments) {
    for_tensors(argument, [&](const at::Tensor& tensor) {
      if (!tensor.defined()) return;
      if (is_ours(tensor)) {
        ours = true;
      } else if (!tensor.unsafeGetTensorImpl()->is_wrapped_number() &&
                 !(is_pointwise && tensor.dim() == 0)) {
        others = true;
      }
    });
  }
  TORCH_CHECK(!(ours && others),
              "Expected all tensors to be on the same device: ", op.schema().operator_name());
}

// The size of the result, or the result itself, is for the host: a device has to be waited for.
bool answers_the_host(std::string_view name) {
  for (const char* one :
       {"aten::nonzero", "aten::masked_select", "aten::_unique2", "aten::unique_dim", "aten::equal",
        "aten::is_nonzero", "aten::_assert_async"}) {
    if (name == one) return true;
  }
  return false;
}

std::vector<std::vector<int64_t>> sizes_of(const std::vector<c10::IValue>& arguments) {
  std::vector<std::vector<int64_t>> sizes;
  for (const c10::IValue& argument : arguments) {
    for_tensors(argument, [&](const at::Tensor& tensor) {
      if (tensor.defined()) sizes.push_back(tensor.sizes().vec());
    });
  }
  return sizes;
}

class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack* stack) : op_(op), stack_(stack) {}

  void run() {
    const auto& parameters = op_.schema().arguments();
    const std::vector<c10::IValue> arguments = torch::jit::pop(*stack_, parameters.size());
    refuse_mixed(op_, arguments);
    if (answers_the_host(op_.schema().name())) count_wait(op_.schema().name().c_str());
    count_launch(op_.schema().name(), sizes_of(arguments));
    for (size_t i = 0; i < arguments.size(); ++i)
      stack_->push_back(lent(arguments[i], is_written(parameters[i])));
    op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack_);
    for (const Lent& result : results_) take_back(result);
    for (size_t i = stack_->size() - op_.schema().returns().size(); i < stack_->size(); ++i)
      (*stack_)[i] = returned((*stack_)[i]);
  }

 private:
  static bool is_written(const c10::Argument& parameter) {
    return parameter.alias_info() != nullptr && parameter.alias_info()->isWrite();
  }

  at::Tensor lent(const at::Tensor& tensor, bool is_written) {
    if (!is_ours(tensor)) return tensor;
    // An empty result may be resized by the kernel; memory of the device cannot be.
    const bool may_grow = is_written && tensor.numel() == 0;
    Lent one{tensor, may_grow
                         ? at::empty({0}, at::TensorOptions(at::kCPU).dtype(tensor.scalar_type()))
                         : seen_by_host(tensor)};
    if (is_written) results_.push_back(one);
    lent_.push_back(one);
    return one.host;
  }

  c10::IValue lent(const c10::IValue& value, bool is_written) {
    if (value.isTensor()) return lent(value.toTensor(), is_written);
    if (value.isDevice()) return c10::IValue(c10::Device(at::kCPU));
    if (value.isTensorList()) {
      std::vector<at::Tensor> tensors;
      for (const at::Tensor& tensor : value.toTensorVector())
        tensors.push_back(lent(tensor, is_written));
      return tensors;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> tensors;
      for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorVector()) {
        tensors.push_back(tensor ? std::optional(lent(*tensor, is_written)) : tensor);
      }
      return tensors;
    }
    return value;
  }

  static void take_back(const Lent& result) {
    if (result.own.sizes() == result.host.sizes()) return;  // the same memory, or none
    TORCH_CHECK(result.own.numel() == 0, "a result was resized");
    result.own.resize_(result.host.sizes());
    seen_by_host(result.own).copy_(result.host);
  }

  at::Tensor returned(const at::Tensor& tensor) const {
    if (!tensor.defined()) return tensor;
    for (const Lent& one : lent_) {
      if (one.host.is_same(tensor)) return one.own;
    }
    return given_to_device(tensor);
  }

  c10::IValue returned(const c10::IValue& value) const {
    if (value.isTensor()) return returned(value.toTensor());
    if (!value.isTensorList()) return value;
    std::vector<at::Tensor> tensors;
    for (const at::Tensor& tensor : value.toTensorVector()) tensors.push_back(returned(tensor));
    return tensors;
  }

  const c10::OperatorHandle& op_;
  torch::jit::Stack* stack_;
  std::vector<Lent> lent_, results_;
};

void fallback(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, stack).run(); }

}  // namespace

void register_pretend_fallback() {
  static torch::Library all(torch::Library::IMPL, "_", c10::DispatchKey::PrivateUse1, __FILE__,
                            __LINE__);
  all.fallback(torch::CppFunction::makeFromBoxedFunction<&fallback>());
  // One launch for a list of tensors, as on CUDA; torch's default takes them one by one.
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                             __LINE__);
  for (const char* name : {"_foreach_norm.Scalar", "_foreach_mul_.Scalar", "_foreach_copy_"})
    aten.impl(name, torch::CppFunction::makeFromBoxedFunction<&fallback>());
}

}  // namespace rematch::test
