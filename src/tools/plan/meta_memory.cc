#include "tools/plan/meta_memory.h"

#include <ATen/ATen.h>
#include <torch/library.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

namespace rematch {
namespace {

using at::Tensor;
using MaybeTensor = std::optional<Tensor>;
using Two = std::tuple<Tensor, Tensor>;
using Three = std::tuple<Tensor, Tensor, Tensor>;

/// One float for each vector of the last dimension.
Tensor statistic(const Tensor& x) {
  std::vector<int64_t> sizes = x.sizes().vec();
  sizes.back() = 1;
  return at::empty(sizes, x.options().dtype(at::kFloat));
}

/// The gradient of a tensor, if it is wanted.
Tensor like(const MaybeTensor& tensor, bool is_wanted) {
  return is_wanted && tensor ? at::empty_like(*tensor) : Tensor();
}

TORCH_LIBRARY_IMPL(aten, Meta, library) {
  library.impl("linalg_solve_triangular",
               [](const Tensor&, const Tensor& right_side, bool, bool, bool) {
                 return at::empty(right_side.sizes(), right_side.options());
               });
  library.impl("index_select", [](const Tensor& x, int64_t dim, const Tensor& index) {
    std::vector<int64_t> sizes = x.sizes().vec();
    sizes[dim < 0 ? dim + x.dim() : dim] = index.numel();
    return at::empty(sizes, x.options());
  });
  library.impl("embedding_dense_backward",
               [](const Tensor& grad, const Tensor&, int64_t num_rows, int64_t, bool) {
                 return at::empty({num_rows, grad.size(-1)}, grad.options());
               });
  library.impl("native_layer_norm",
               [](const Tensor& x, at::IntArrayRef, const MaybeTensor&, const MaybeTensor&,
                  double) { return Three(at::empty_like(x), statistic(x), statistic(x)); });
  library.impl("native_layer_norm_backward",
               [](const Tensor&, const Tensor& x, at::IntArrayRef, const Tensor&, const Tensor&,
                  const MaybeTensor& weight, const MaybeTensor& bias, std::array<bool, 3> wanted) {
                 return Three(like(x, wanted[0]), like(weight.value_or(x), wanted[1]),
                              like(bias.value_or(x), wanted[2]));
               });
  // The fused operators of devices (model/nn/device_kernels.h).
  library.impl("_fused_rms_norm",
               [](const Tensor& x, at::IntArrayRef, const MaybeTensor&, std::optional<double>) {
                 return Two(at::empty_like(x), statistic(x));
               });
  library.impl(
      "_fused_rms_norm_backward",
      [](const Tensor&, const Tensor& x, at::IntArrayRef, const Tensor&, const MaybeTensor& weight,
         std::array<bool, 2> wanted) { return Two(like(x, wanted[0]), like(weight, wanted[1])); });
  library.impl("roll",
               [](const Tensor& x, at::IntArrayRef, at::IntArrayRef) { return at::empty_like(x); });
  library.impl("native_dropout", [](const Tensor& x, double, std::optional<bool>) {
    return Two(at::empty_like(x), at::empty_like(x, at::kBool));
  });
  library.impl("native_dropout_backward", [](const Tensor& gradient, const Tensor&, double) {
    return at::empty_like(gradient);
  });
}

// Patch embedding and attention.
TORCH_LIBRARY_IMPL(aten, Meta, library) {
  // Kernel = stride = input: one output value per filter, as in a patch embedding.
  library.impl("convolution",
               [](const Tensor& x, const Tensor& weight, const MaybeTensor&, at::IntArrayRef,
                  at::IntArrayRef, at::IntArrayRef, bool, at::IntArrayRef, int64_t) {
                 return at::empty({x.size(0), weight.size(0), 1, 1, 1}, x.options());
               });
  library.impl("convolution_backward",
               [](const Tensor&, const Tensor& x, const Tensor& weight,
                  at::OptionalIntArrayRef bias, at::IntArrayRef, at::IntArrayRef, at::IntArrayRef,
                  bool, at::IntArrayRef, int64_t, std::array<bool, 3> wanted) {
                 return Three(like(x, wanted[0]), like(weight, wanted[1]),
                              wanted[2] && bias ? at::empty(*bias, x.options()) : Tensor());
               });
  // [B, heads, T, D]; stored as [B, T, heads, D].
  library.impl("_scaled_dot_product_flash_attention_for_cpu", [](const Tensor& q, const Tensor&,
                                                                 const Tensor&, double, bool,
                                                                 const MaybeTensor&,
                                                                 std::optional<double>) {
    const int64_t batch = q.size(0), heads = q.size(1), tokens = q.size(2);
    return Two(at::empty({batch, tokens, heads, q.size(3)}, q.options()).transpose(1, 2),
               at::empty({batch, tokens, heads}, q.options().dtype(at::kFloat)).transpose(1, 2));
  });
  library.impl("_scaled_dot_product_flash_attention_for_cpu_backward",
               [](const Tensor&, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor&,
                  const Tensor&, double, bool, const MaybeTensor&, std::optional<double>) {
                 return Three(at::empty_like(q), at::empty_like(k), at::empty_like(v));
               });
}

TORCH_LIBRARY_IMPL(aten, AutogradMeta, library) {
  // Replaces torch's implementation, which makes a [T, T] tensor on this device.
  library.impl("scaled_dot_product_attention",
               [](const Tensor& q, const Tensor& k, const Tensor& v, const MaybeTensor& mask,
                  double dropout, bool is_causal, std::optional<double> scale, bool) {
                 return std::get<0>(at::_scaled_dot_product_flash_attention_for_cpu(
                     q, k, v, dropout, is_causal, mask, scale));
               });
}

// Counts the bytes of all storages on the meta device.
class CountingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t num_bytes) override {
    live += static_cast<int64_t>(num_bytes);
    peak = std::max(peak, live);
    return {nullptr, new size_t(num_bytes), release, at::kMeta};
  }
  void copy_data(void*, const void*, std::size_t) const override {}

  static inline int64_t live = 0, peak = 0;

 private:
  static void release(void* context) {
    const std::unique_ptr<size_t> num_bytes(static_cast<size_t*>(context));
    live -= static_cast<int64_t>(*num_bytes);
  }
};

}  // namespace

MetaMemory::MetaMemory() {
  static CountingAllocator allocator;
  static const bool is_set = [] {
    c10::SetAllocator(at::kMeta, &allocator, /*priority=*/1);
    return true;
  }();
  static_cast<void>(is_set);
  begin_ = CountingAllocator::live;
  restart_peak();
}

int64_t MetaMemory::live() const { return CountingAllocator::live - begin_; }
int64_t MetaMemory::peak() const { return CountingAllocator::peak - begin_; }
void MetaMemory::restart_peak() { CountingAllocator::peak = CountingAllocator::live; }

}  // namespace rematch
