// The operators that a device must implement itself: memory, copies, views, and the convolution,
// which torch offers no other device.
#include <ATen/EmptyTensor.h>
#include <torch/library.h>

#include <array>
#include <cstring>

#include "support/pretend_memory.h"

namespace rematch::test {
namespace {

using Sizes = c10::SymIntArrayRef;

c10::IntArrayRef ints(Sizes sizes) { return C10_AS_INTARRAYREF_SLOW(sizes); }
const c10::DispatchKeySet kKeys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(Sizes size, std::optional<c10::ScalarType> dtype, std::optional<c10::Layout>,
                 std::optional<c10::Device>, std::optional<bool>,
                 std::optional<c10::MemoryFormat> format) {
  return at::detail::empty_generic(ints(size), &pretend_allocator(), kKeys,
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(Sizes size, Sizes stride, std::optional<c10::ScalarType> dtype,
                         std::optional<c10::Layout>, std::optional<c10::Device>,
                         std::optional<bool>) {
  return at::detail::empty_strided_generic(ints(size), ints(stride), &pretend_allocator(), kKeys,
                                           c10::dtype_or_default(dtype));
}

at::Tensor copy_from(const at::Tensor& from, const at::Tensor& to, bool non_blocking) {
  const bool is_upload = from.device().is_cpu(), is_download = to.device().is_cpu();
  if (from.numel() > 0 && is_download) count_wait("copy to the host");
  if (from.numel() > 0 && is_upload) {
    if (non_blocking && from.is_pinned()) {
      count_upload();
    } else {
      count_wait("copy to the device");
    }
  }
  seen_by_host(to).copy_(seen_by_host(from));
  return to;
}

at::Tensor copy_from_and_resize(const at::Tensor& from, const at::Tensor& to) {
  to.resize_(from.sizes());
  return copy_from(from, to, false);
}

at::Scalar local_scalar(const at::Tensor& tensor) {
  count_wait("item()");
  return seen_by_host(tensor).item();
}

at::Tensor viewed(const at::Tensor& tensor, c10::IntArrayRef size, c10::IntArrayRef stride,
                  int64_t offset) {
  at::Tensor view = at::detail::make_tensor<c10::TensorImpl>(
      c10::TensorImpl::VIEW, c10::Storage(tensor.storage()), tensor.key_set(), tensor.dtype());
  view.unsafeGetTensorImpl()->set_sizes_and_strides(size, stride, offset);
  return view;
}

at::Tensor as_strided(const at::Tensor& tensor, Sizes size, Sizes stride,
                      std::optional<c10::SymInt> offset) {
  return viewed(tensor, ints(size), ints(stride),
                offset ? offset->expect_int() : tensor.storage_offset());
}

at::Tensor view(const at::Tensor& tensor, Sizes size) {
  const at::Tensor host = seen_by_host(tensor).view(ints(size));
  return viewed(tensor, host.sizes(), host.strides(), tensor.storage_offset());
}

at::Tensor reshape_alias(const at::Tensor& tensor, Sizes size, Sizes stride) {
  return viewed(tensor, ints(size), ints(stride), tensor.storage_offset());
}

const at::Tensor& resize_(const at::Tensor& tensor, Sizes size, std::optional<c10::MemoryFormat>) {
  size_t bytes = tensor.element_size();
  for (const int64_t length : ints(size)) bytes *= static_cast<size_t>(length);
  c10::StorageImpl* storage = tensor.storage().unsafeGetStorageImpl();
  if (storage->nbytes() < bytes) {
    c10::DataPtr data = pretend_allocator().allocate(bytes);
    if (storage->nbytes() > 0)
      pretend_allocator().copy_data(data.get(), storage->data(), storage->nbytes());
    storage->set_data_ptr_noswap(std::move(data));
    storage->set_nbytes(bytes);
  }
  tensor.unsafeGetTensorImpl()->set_sizes_contiguous(ints(size));
  return tensor;
}

at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, Sizes stride, Sizes padding,
                       Sizes dilation, bool transposed, Sizes output_padding, c10::SymInt groups) {
  const std::optional<at::Tensor> host_bias =
      bias ? std::optional(seen_by_host(*bias)) : std::nullopt;
  return given_to_device(at::convolution_symint(seen_by_host(input), seen_by_host(weight),
                                                host_bias, stride, padding, dilation, transposed,
                                                output_padding, groups));
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& input, const at::Tensor& weight, Sizes stride,
    Sizes padding, Sizes dilation, bool transposed, Sizes output_padding, c10::SymInt groups,
    std::array<bool, 3> wanted) {
  const c10::SymInt channels = weight.sym_size(0);
  const auto [input_gradient, weight_gradient, bias_gradient] = at::convolution_backward_symint(
      seen_by_host(gradient), seen_by_host(input), seen_by_host(weight), Sizes(&channels, 1),
      stride, padding, dilation, transposed, output_padding, groups, wanted);
  return {given_to_device(input_gradient), given_to_device(weight_gradient),
          given_to_device(bias_gradient)};
}

// Whether Tensor::set_data may put memory of one device in the place of another's; torch knows it
// of this backend only.
bool may_change_places(const at::Tensor&, const at::Tensor&) { return true; }

}  // namespace

void register_pretend_operators() {
  static torch::Library aten(torch::Library::IMPL, "aten", c10::DispatchKey::PrivateUse1, __FILE__,
                             __LINE__);
  aten.impl("empty.memory_format", &empty);
  aten.impl("empty_strided", &empty_strided);
  aten.impl("_copy_from", &copy_from);
  aten.impl("_copy_from_and_resize", &copy_from_and_resize);
  aten.impl("_local_scalar_dense", &local_scalar);
  aten.impl("as_strided", &as_strided);
  aten.impl("view", &view);
  aten.impl("_reshape_alias", &reshape_alias);
  aten.impl("resize_", &resize_);
  aten.impl("_has_compatible_shallow_copy_type", &may_change_places);
  aten.impl("convolution_overrideable", &convolution);
  aten.impl("convolution_backward_overrideable", &convolution_backward);
}

}  // namespace rematch::test
