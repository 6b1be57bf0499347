#include "model/nn/short_conv.h"

#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>

#include "model/nn/device_kernels.h"
#include "model/nn/upload.h"

namespace rematch {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Calls use(shift, first, count) for the taps of every segment: the tap reads `shift` tokens back,
// which exist for `count` tokens from row `first`.
template <typename Use>
void for_each_tap(const std::vector<int64_t>& segment_lens, int64_t num_taps, const Use& use) {
  int64_t begin = 0;
  for (const int64_t len : segment_lens) {
    for (int64_t shift = 0; shift < std::min(num_taps, len); ++shift)
      use(shift, begin + shift, len - shift);
    begin += len;
  }
}

// Weights of the taps, [C] float32 each, the current token's first.
std::vector<at::Tensor> split_taps(const at::Tensor& weight_C1J) {
  std::vector<at::Tensor> taps;
  for (int64_t j = weight_C1J.size(2) - 1; j >= 0; --j)
    taps.push_back(weight_C1J.select(1, 0).select(1, j).to(at::kFloat).contiguous());
  return taps;
}

// The convolution before silu, float32.
at::Tensor convolve(const at::Tensor& x_TC, const at::Tensor& weight_C1J,
                    const std::vector<int64_t>& segment_lens) {
  const at::Tensor x = x_TC.to(at::kFloat);
  const std::vector<at::Tensor> taps = split_taps(weight_C1J);
  at::Tensor sum = x * taps[0];
  for_each_tap(segment_lens, weight_C1J.size(2), [&](int64_t shift, int64_t first, int64_t count) {
    if (shift == 0) return;
    sum.narrow(0, first, count).addcmul_(x.narrow(0, first - shift, count), taps[shift]);
  });
  return sum;
}

struct ShortConv : torch::autograd::Function<ShortConv> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_TC,
                            const at::Tensor& weight_C1J,
                            const std::vector<int64_t>& segment_lens) {
    context->save_for_backward({x_TC, weight_C1J});
    context->saved_data["lens"] = segment_lens;
    return at::silu(convolve(x_TC, weight_C1J, segment_lens).to(x_TC.scalar_type()));
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x_TC = saved[0], &weight_C1J = saved[1];
    const std::vector<int64_t> lens = context->saved_data["lens"].toIntVector();
    const int64_t num_taps = weight_C1J.size(2);
    const at::Tensor sum = convolve(x_TC, weight_C1J, lens).to(x_TC.scalar_type());
    const at::Tensor g =
        at::silu_backward(gradients[0].to(at::kFloat), sum.to(at::kFloat)).contiguous();
    variable_list found(3);
    if (context->needs_input_grad(0)) {
      const std::vector<at::Tensor> taps = split_taps(weight_C1J);
      at::Tensor dx = g * taps[0];
      for_each_tap(lens, num_taps, [&](int64_t shift, int64_t first, int64_t count) {
        if (shift == 0) return;
        dx.narrow(0, first - shift, count).addcmul_(g.narrow(0, first, count), taps[shift]);
      });
      found[0] = dx.to(x_TC.scalar_type());
    }
    if (context->needs_input_grad(1)) {
      const at::Tensor x = x_TC.to(at::kFloat);
      at::Tensor dw = at::zeros({num_taps, x.size(1)}, x.options());
      for_each_tap(lens, num_taps, [&](int64_t shift, int64_t first, int64_t count) {
        dw.select(0, num_taps - 1 - shift)
            .add_((g.narrow(0, first, count) * x.narrow(0, first - shift, count)).sum(0));
      });
      found[1] = dw.t().unsqueeze(1).to(weight_C1J.scalar_type());
    }
    return found;
  }
};

// Weights of the taps [J, C] float32, the oldest input's first.
at::Tensor taps_JC(const at::Tensor& weight_C1J) {
  return weight_C1J.select(1, 0).t().to(at::kFloat).contiguous();
}

// Rows in slots; all others are zero.
at::Tensor in_slots(const at::Tensor& rows, const at::Tensor& slot_of_row, int64_t num_slots) {
  return at::zeros({num_slots, rows.size(1)}, rows.options()).index_copy_(0, slot_of_row, rows);
}

// The convolution of all slots from the first with all taps on, before silu, float32.
at::Tensor convolve_slots(const at::Tensor& slots_PC, const at::Tensor& taps) {
  const int64_t num_taps = taps.size(0), count = slots_PC.size(0) - num_taps + 1;
  // As the other one adds: the newest input first.
  at::Tensor sum = slots_PC.narrow(0, num_taps - 1, count) * taps[num_taps - 1];
  for (int64_t j = num_taps - 2; j >= 0; --j) sum.addcmul_(slots_PC.narrow(0, j, count), taps[j]);
  return sum;
}

// The rows of slots, which begin at slot `first`.
at::Tensor rows_of(const at::Tensor& slots, const at::Tensor& slot_of_row, int64_t first) {
  return slots.index_select(0, slot_of_row - first);
}

/// ShortConv on devices: launches do not grow with the number of segments.
struct SpacedConv : torch::autograd::Function<SpacedConv> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x_TC,
                            const at::Tensor& weight_C1J, const at::Tensor& slot_of_row,
                            int64_t num_slots) {
    context->save_for_backward({x_TC, weight_C1J, slot_of_row});
    context->saved_data["slots"] = num_slots;
    return short_conv_in_slots(in_slots(x_TC, slot_of_row, num_slots), weight_C1J, slot_of_row);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const variable_list saved = context->get_saved_variables();
    const at::Tensor &x_TC = saved[0], &weight_C1J = saved[1], &slot_of_row = saved[2];
    const int64_t num_slots = context->saved_data["slots"].toInt(), last = weight_C1J.size(2) - 1;
    const at::Tensor taps = taps_JC(weight_C1J), slots = in_slots(x_TC, slot_of_row, num_slots);
    const at::Tensor sum = rows_of(convolve_slots(slots, taps), slot_of_row, last);
    // As in the forward pass, rounded before silu.
    const at::Tensor g_TC =
        at::silu_backward(gradients[0].to(at::kFloat), sum.to(x_TC.scalar_type()).to(at::kFloat));
    const int64_t count = num_slots - last;
    variable_list found(4);
    if (context->needs_input_grad(0)) {
      // The convolution backwards: the newest input, which a gradient reaches, comes first.
      const at::Tensor g = in_slots(g_TC, slot_of_row, num_slots + last);
      std::vector<at::Tensor> reversed = taps.unbind();
      std::ranges::reverse(reversed);
      const at::Tensor dx = convolve_slots(g, at::stack(reversed));
      found[0] = dx.index_select(0, slot_of_row).to(x_TC.scalar_type());
    }
    if (context->needs_input_grad(1)) {
      const at::Tensor g = in_slots(g_TC, slot_of_row, num_slots).narrow(0, last, count);
      std::vector<at::Tensor> sums;
      for (int64_t j = 0; j <= last; ++j) sums.push_back((g * slots.narrow(0, j, count)).sum(0));
      found[1] = at::stack(sums, 1).unsqueeze(1).to(weight_C1J.scalar_type());
    }
    return found;
  }
};

}  // namespace

at::Tensor spaced_rows(const std::vector<int64_t>& segment_lens, int64_t num_taps) {
  std::vector<int64_t> slots;
  int64_t next = 0;
  for (const int64_t len : segment_lens) {
    next += num_taps - 1;
    for (int64_t i = 0; i < len; ++i) slots.push_back(next++);
  }
  return at::tensor(slots, at::kLong);
}

at::Tensor short_conv_in_slots(const at::Tensor& slots_PC, const at::Tensor& weight_C1J,
                               const at::Tensor& slot_of_row) {
  const at::Tensor taps = taps_JC(weight_C1J);
  const at::Tensor sum = rows_of(convolve_slots(slots_PC, taps), slot_of_row, taps.size(0) - 1);
  return at::silu(sum.to(slots_PC.scalar_type()));
}

at::Tensor short_conv(const at::Tensor& x_TC, const at::Tensor& weight_C1J,
                      const std::vector<int64_t>& segment_lens, const at::Tensor& slot_of_row) {
  if (!uses_device_kernels(x_TC.device())) return ShortConv::apply(x_TC, weight_C1J, segment_lens);
  const int64_t num_taps = weight_C1J.size(2);
  const auto num_segments = std::ssize(segment_lens);
  return SpacedConv::apply(x_TC, weight_C1J,
                           slot_of_row.defined()
                               ? slot_of_row
                               : upload(spaced_rows(segment_lens, num_taps), x_TC.device()),
                           x_TC.size(0) + num_segments * (num_taps - 1));
}

at::Tensor short_conv_step(const at::Tensor& x_BC, const at::Tensor& weight_C1J,
                           const at::Tensor& window_BJC) {
  const at::Tensor all_BJC = at::cat({window_BJC.to(x_BC.scalar_type()), x_BC.unsqueeze(1)}, 1);
  window_BJC.copy_(all_BJC.narrow(1, 1, window_BJC.size(1)));
  const std::vector<at::Tensor> taps = split_taps(weight_C1J);
  at::Tensor sum = x_BC.to(at::kFloat) * taps[0];
  for (int64_t shift = 1; shift < weight_C1J.size(2); ++shift) {
    sum.addcmul_(all_BJC.select(1, window_BJC.size(1) - shift).to(at::kFloat), taps[shift]);
  }
  return at::silu(sum.to(x_BC.scalar_type()));
}

}  // namespace rematch
