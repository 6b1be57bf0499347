#include "model/nn/attention_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>

#include "model/nn/upload.h"

namespace rematch {
namespace {

// Head sizes that the backward pass of flash attention supports on every GPU: multiples of 8.
constexpr int64_t kLargestHead = 128, kHeadStep = 8;

// Only the operator knows whether a GPU is new enough.
bool try_flash(const at::Device& device) {
  const at::NoGradGuard no_grad;
  const SegmentBounds bounds = SegmentBounds::from_lens({8}, device);
  const at::Tensor x = at::zeros({8, 1, 64}, at::TensorOptions(device).dtype(at::kBFloat16));
  try {
    varlen_attention(x, x, x, bounds, bounds, /*is_causal=*/true);
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

bool flash_runs_on(const at::Device& device) {
  static const bool runs = try_flash(device);  // a process computes on one device
  return runs;
}

}  // namespace

AttentionKernel choose_attention(const AttentionCase& input,
                                 const std::function<bool(const at::Device&)>& flash_runs) {
  const bool fits =
      input.head_dim > 0 && input.head_dim <= kLargestHead && input.head_dim % kHeadStep == 0;
  const bool suits = !input.device.is_cpu() && input.dtype == at::kBFloat16 && fits;
  return suits && flash_runs(input.device) ? AttentionKernel::kVarlen : AttentionKernel::kGroups;
}

AttentionKernel choose_attention(const AttentionCase& input) {
  return choose_attention(input, flash_runs_on);
}

std::string describe_attention(const at::Device& device, at::ScalarType dtype,
                               const std::vector<int64_t>& head_dims) {
  std::string text;
  for (const int64_t head_dim : head_dims) {
    const AttentionKernel kernel =
        choose_attention({.device = device, .dtype = dtype, .head_dim = head_dim});
    text += fmt::format("{}{} for heads of {}", text.empty() ? "" : ", ",
                        kernel == AttentionKernel::kVarlen ? "flash attention by cumulative lengths"
                                                           : "SDPA by groups of lengths",
                        head_dim);
  }
  return text;
}

SegmentBounds SegmentBounds::from_lens(const std::vector<int64_t>& lens, const at::Device& device) {
  std::vector<int32_t> begins(lens.size() + 1, 0);
  std::transform_inclusive_scan(lens.begin(), lens.end(), begins.begin() + 1, std::plus<>(),
                                [](int64_t len) { return static_cast<int32_t>(len); });
  return {upload(at::tensor(begins, at::kInt), device),
          lens.empty() ? 0 : *std::max_element(lens.begin(), lens.end())};
}

at::Tensor varlen_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const SegmentBounds& queries, const SegmentBounds& keys,
                            bool is_causal) {
  return std::get<0>(at::_flash_attention_forward(q, k, v, queries.begins, keys.begins,
                                                  queries.longest, keys.longest, /*dropout_p=*/0.0,
                                                  is_causal, /*return_debug_mask=*/false));
}

}  // namespace rematch
