#include "model/nn/fused_conv.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "model/kernels/half_conv.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// The rows of a convolution, with the bounds of each row's segment.
class ConvSegments {
 public:
  ConvSegments(const std::vector<int64_t>& lens, const at::Tensor& weight_C1J)
      : taps_JC_(weight_C1J.select(1, 0).flip(1).t().to(at::kFloat).contiguous()) {
    int64_t begin = 0;
    for (const int64_t len : lens) {
      bounds_.insert(bounds_.end(), static_cast<size_t>(len), {begin, begin + len});
      begin += len;
    }
  }

  /// The rows before `row`, or after it, that share its segment. @param direction  -1 or 1
  template <class T>
  kernels::ConvRows<T> around(const T* data, int64_t row, int64_t direction) const {
    kernels::ConvRows<T> found{.num_taps = static_cast<int>(taps_JC_.size(0)),
                               .taps = taps_JC_.const_data_ptr<float>(),
                               .width = taps_JC_.size(1)};
    const auto [begin, end] = bounds_[static_cast<size_t>(row)];
    for (int shift = 0; shift < found.num_taps; ++shift) {
      const int64_t other = row + direction * shift;
      if (other >= begin && other < end) found.rows[shift] = data + other * found.width;
    }
    return found;
  }

  template <class Work>
  void for_rows(const Work& work) const {
    constexpr int64_t kGrain = 8;
    at::parallel_for(0, static_cast<int64_t>(bounds_.size()), kGrain,
                     [&](int64_t begin, int64_t end) {
                       for (int64_t row = begin; row < end; ++row) work(row);
                     });
  }

 private:
  at::Tensor taps_JC_;  ///< the current token's first
  std::vector<std::pair<int64_t, int64_t>> bounds_;
};

const uint16_t* conv_values(const at::Tensor& x) {
  return static_cast<const uint16_t*>(x.const_data_ptr());
}

struct FusedConv : torch::autograd::Function<FusedConv> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_TC,
                            const at::Tensor& weight_C1J,
                            const std::vector<int64_t>& segment_lens) {
    context->save_for_backward({x_TC, weight_C1J});
    context->saved_data["lens"] = segment_lens;
    const ConvSegments segments(segment_lens, weight_C1J);
    const at::Tensor x = x_TC.contiguous(), y = at::empty_like(x);
    auto* const to = static_cast<uint16_t*>(y.mutable_data_ptr());
    segments.for_rows([&](int64_t row) {
      kernels::half_conv(segments.around(conv_values(x), row, -1), to + row * x.size(1));
    });
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const ConvSegments segments(context->saved_data["lens"].toIntVector(), saved[1]);
    const at::Tensor x = saved[0].contiguous(), g = gradients[0].contiguous(),
                     g_s = at::empty(x.sizes(), x.options().dtype(at::kFloat)),
                     g_x = at::empty_like(x);
    const int64_t width = x.size(1);
    auto* const sums = g_s.mutable_data_ptr<float>();
    auto* const to = static_cast<uint16_t*>(g_x.mutable_data_ptr());
    segments.for_rows([&](int64_t row) {
      kernels::half_conv_silu_gradient(segments.around(conv_values(x), row, -1),
                                       conv_values(g) + row * width, sums + row * width);
    });
    segments.for_rows([&](int64_t row) {
      kernels::half_conv_gradient(segments.around<float>(sums, row, 1), to + row * width);
    });
    return {g_x, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

bool has_fused_conv(const at::Tensor& x_TC, const at::Tensor& weight_C1J) {
  return x_TC.is_cpu() && x_TC.scalar_type() == at::kBFloat16 && !weight_C1J.requires_grad() &&
         weight_C1J.size(2) <= kernels::kMaxConvTaps && x_TC.numel() > 0;
}

at::Tensor fused_conv(const at::Tensor& x_TC, const at::Tensor& weight_C1J,
                      const std::vector<int64_t>& segment_lens) {
  return FusedConv::apply(x_TC, weight_C1J, segment_lens);
}

}  // namespace rematch
