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
  const auto num_bytes = static_cast<int64_t>(from.nbytes());
  if (from.numel() > 0 && !is_upload && !is_download)
    count_launch("aten::copy_", {to.sizes().vec()});
  count_bytes(is_upload ? num_bytes : 0, is_download ? num_bytes : 0);
  if (from.numel() > 0 && is_download && !(non_blocking && to.is_pinned()))
    count_wait("copy to the host");
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
  count_bytes(0, static_cast<int64_t>(tensor.nbytes()));
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
  count_launch("aten::convolution", {input.sizes().vec()});
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
  count_launch("aten::convolution_backward", {input.sizes().vec()});
  const c10::SymInt channels = weight.sym_size(0);
  const auto [input_gradient, weight_gradient, bias_gradient] = at::convolution_backward_symint(
      seen_by_host(gradient), seen_by_host(input), seen_by_host(weight), Sizes(&channels, 1),
      stride, padding, dilation, transposed, output_padding, groups, wanted);
  return {given_to_device(input_gradient), given_to_device(weight_gradient),
          given_to_device(bias_gradient)};
}

std::tuple<at::Tensor, at::Tensor, at::Tensor> layer_norm(const at::Tensor& input, Sizes shape,
                                                          const std::optional<at::Tensor>& weight,
                                                          const std::optional<at::Tensor>& bias,
                                                          double eps) {
  count_launch("aten::native_layer_norm", {input.sizes().vec()});
  const auto on_host = [](const std::optional<at::Tensor>& tensor) {
    return tensor ? std::optional(seen_by_host(*tensor)) : std::nullopt;
  };
  const auto [y, mean, rstd] =
      at::native_layer_norm_symint(seen_by_host(input), shape, on_host(weight), on_host(bias), eps);
  return {given_to_device(y), given_to_device(mean), given_to_device(rstd)};
}

std::tuple<at::Tensor, at::Tensor> rms_norm(const at::Tensor& input, c10::IntArrayRef,
                                            const std::optional<at::Tensor>& weight,
                                            std::optional<double> eps) {
  count_launch("aten::_fused_rms_norm", {input.sizes().vec()});
  const at::Tensor x = seen_by_host(input).to(at::kFloat);
  const at::Tensor rstd = at::rsqrt(x.pow(2).mean(-1, true) + *eps);
  const at::Tensor y = x * rstd * seen_by_host(*weight).to(at::kFloat);
  return {given_to_device(y.to(input.scalar_type())), given_to_device(rstd)};
}

std::tuple<at::Tensor, at::Tensor> rms_norm_backward(const at::Tensor& gradient,
                                                     const at::Tensor& input, c10::IntArrayRef,
                                                     const at::Tensor& rstd,
                                                     const std::optional<at::Tensor>& weight,
                                                     std::array<bool, 2> wanted) {
  count_launch("aten::_fused_rms_norm_backward", {input.sizes().vec()});
  const auto wide = [](const at::Tensor& x) { return seen_by_host(x).to(at::kFloat); };
  const at::Tensor normed = wide(input) * wide(rstd), g = wide(gradient) * wide(*weight);
  const at::Tensor dx = wide(rstd) * (g - normed * (g * normed).mean(-1, true));
  const at::Tensor dw = (wide(gradient) * normed).flatten(0, -2).sum(0);
  return {wanted[0] ? given_to_device(dx.to(input.scalar_type())) : at::Tensor(),
          wanted[1] ? given_to_device(dw.to(weight->scalar_type())) : at::Tensor()};
}

// Draws from the device's generator.
std::tuple<at::Tensor, at::Tensor> native_dropout(const at::Tensor& input, double dropout,
                                                  std::optional<bool>) {
  count_launch("aten::native_dropout", {input.sizes().vec()});
  const at::Tensor mask = at::empty(input.sizes(), at::TensorOptions(at::kBool))
                              .bernoulli_(1 - dropout, pretend_generator());
  return {
      given_to_device((seen_by_host(input) * mask * (1 / (1 - dropout))).to(input.scalar_type())),
      given_to_device(mask)};
}

// Tensor::set_data may put memory of one device in the place of another's; torch asks this of this
// backend only.
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
  aten.impl("native_layer_norm", &layer_norm);
  aten.impl("_fused_rms_norm", &rms_norm);
  aten.impl("_fused_rms_norm_backward", &rms_norm_backward);
  aten.impl("native_dropout", &native_dropout);
  aten.impl("convolution_overrideable", &convolution);
  aten.impl("convolution_backward_overrideable", &convolution_backward);
}

}  // namespace rematch::test
