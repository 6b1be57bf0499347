#include "model/nn/attention_choice.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <numeric>

#include "model/nn/upload.h"

namespace rematch {
namespace {

// Head sizes that flash attention has kernels for: multiples of 8.
constexpr int64_t kLargestHead = 256, kHeadStep = 8;

/// The result of a try for each head size. A process computes on one device.
class Found {
 public:
  using Try = bool (*)(const at::Device& device, int64_t head_dim);

  explicit Found(Try run) : run_(run) {}
  bool operator()(const at::Device& device, int64_t head_dim) {
    const std::scoped_lock lock(mutex_);
    const auto [found, is_new] = by_head_.try_emplace(head_dim);
    if (is_new) found->second = run_(device, head_dim);
    return found->second;
  }

 private:
  Try run_;
  std::mutex mutex_;
  std::map<int64_t, bool> by_head_;
};

// Only the operator knows whether a GPU is new enough, and has a backward pass for large heads.
bool try_flash(const at::Device& device, int64_t head_dim) {
  const at::AutoGradMode with_grad(true);
  const SegmentBounds bounds = SegmentBounds::from_lens({8}, device);
  const at::Tensor x =
      at::zeros({8, 1, head_dim}, at::TensorOptions(device).dtype(at::kBFloat16)).requires_grad_();
  try {
    varlen_attention(x, x, x, bounds, bounds, /*is_causal=*/true).sum().backward();
    return true;
  } catch (const c10::Error&) {
    return false;
  }
}

bool flash_runs_on(const at::Device& device, int64_t head_dim) {
  static Found found(try_flash);
  return found(device, head_dim);
}

// Two sequences over shuffled pages: what they may see is 1, everything else 64, so that their
// answer is 1 only if nothing else is read.
bool try_pages(const at::Device& device, int64_t head_dim) {
  const at::NoGradGuard no_grad;
  const auto ints = [&](const std::vector<int32_t>& values) {
    return upload(at::tensor(values, at::kInt), device);
  };
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kBFloat16);
  const PageTable table{.pages_SB = ints({2, 0, 3, 1}).view({2, 2}),
                        .lens_S = ints({3, kPageTokens + 5}),
                        .begins = ints({0, 3, kPageTokens + 8}),
                        .max_len = 2 * kPageTokens};
  try {
    const at::Tensor k_pages = at::zeros({4, kPageTokens, 1, head_dim}, options);
    at::Tensor v_pages = at::full_like(k_pages, 64);
    v_pages.select(0, 2).narrow(0, 0, 3).fill_(1);
    v_pages.select(0, 3).fill_(1);
    v_pages.select(0, 1).narrow(0, 0, 5).fill_(1);
    const at::Tensor out =
        paged_attention(at::zeros({2, 2, head_dim}, options), k_pages, v_pages, table);
    return (out - 1).abs().max().item<double>() < 0.02;
  } catch (const c10::Error&) {
    return false;
  }
}

}  // namespace

AttentionKernel choose_attention(const AttentionCase& input, const FlashRuns& flash_runs) {
  const bool fits =
      input.head_dim > 0 && input.head_dim <= kLargestHead && input.head_dim % kHeadStep == 0;
  const bool suits = !input.device.is_cpu() && input.dtype == at::kBFloat16 && fits;
  return suits && flash_runs(input.device, input.head_dim) ? AttentionKernel::kVarlen
                                                           : AttentionKernel::kGroups;
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
          lens.empty() ? 0 : *std::ranges::max_element(lens)};
}

at::Tensor varlen_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const SegmentBounds& queries, const SegmentBounds& keys,
                            bool is_causal) {
  return std::get<0>(at::_flash_attention_forward(q, k, v, queries.begins, keys.begins,
                                                  queries.longest, keys.longest, /*dropout_p=*/0.0,
                                                  is_causal, /*return_debug_mask=*/false));
}

at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k_pages,
                           const at::Tensor& v_pages, const PageTable& table) {
  const at::Tensor begins_q =
      at::arange(q.size(0) + 1, at::TensorOptions(q.device()).dtype(at::kInt));
  return std::get<0>(at::_flash_attention_forward(
      q, k_pages, v_pages, begins_q, table.begins, /*max_q=*/1, table.max_len, /*dropout_p=*/0.0,
      /*is_causal=*/false, /*return_debug_mask=*/false, /*scale=*/std::nullopt,
      /*window_size_left=*/std::nullopt, /*window_size_right=*/std::nullopt, table.lens_S,
      /*alibi_slopes=*/std::nullopt, table.pages_SB));
}

bool has_paged_attention(const AttentionCase& input) {
  if (choose_attention(input) != AttentionKernel::kVarlen) return false;
  static Found found(try_pages);
  return found(input.device, input.head_dim);
}

}  // namespace rematch
