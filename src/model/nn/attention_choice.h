#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace rematch {

/// Implementation of attention inside the segments of a varlen row.
enum class AttentionKernel {
  kGroups,  ///< SDPA over groups of segments of similar lengths: every device and dtype
  /// one flash-attention call for the whole row, with cumulative lengths of the segments
  kVarlen,
};

/// Inputs of the choice.
struct AttentionCase {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  int64_t head_dim = 0;
};

/// True if flash attention runs on a device with heads of a size, forward and backward.
using FlashRuns = std::function<bool(const at::Device& device, int64_t head_dim)>;

/// Chooses kVarlen for bfloat16 on a GPU where the operator runs with heads of this size, a
/// multiple of 8 up to 256; otherwise kGroups.
/// @param flash_runs  called only if all other conditions hold
AttentionKernel choose_attention(const AttentionCase& input, const FlashRuns& flash_runs);
/// Tries flash attention on the device, once for each head size.
AttentionKernel choose_attention(const AttentionCase& input);

/// One line for the log.
/// @param head_dims  head sizes of the model's towers
std::string describe_attention(const at::Device& device, at::ScalarType dtype,
                               const std::vector<int64_t>& head_dims);

/// Cumulative lengths of segments on a device, as flash attention reads them.
struct SegmentBounds {
  /// [segments + 1] int32: first row of each segment, then the number of rows
  at::Tensor begins;
  int64_t longest = 0;  ///< rows of the longest segment

  static SegmentBounds from_lens(const std::vector<int64_t>& lens, const at::Device& device);
};

/// Flash attention of every segment of queries over its segment of keys; differentiable.
/// @param q  [Tq, nq, D].
/// @param k,v  [Tk, nkv, D], nq a multiple of nkv
/// @param is_causal  query i from the end of a segment attends to all but its last i keys
/// @return   [Tq, nq, D].
/// @throws c10::Error if the device has no such operator
at::Tensor varlen_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const SegmentBounds& queries, const SegmentBounds& keys,
                            bool is_causal);

/// Tokens of a page: flash attention reads pages of multiples of 256.
inline constexpr int64_t kPageTokens = 256;

/// The pages of S sequences, as flash attention reads them.
struct PageTable {
  at::Tensor pages_SB;  ///< int32: the pages of each sequence, after its last one any page
  at::Tensor lens_S;    ///< int32: tokens of each sequence, ≥ 1
  at::Tensor begins;    ///< int32 [S + 1]: sums of lens_S
  int64_t max_len = 0;  ///< no sequence has more tokens

  bool is_defined() const { return pages_SB.defined(); }
};

/// Flash attention of one query a sequence over its tokens in pages, which are not copied.
/// @param q  [S, nq, D].
/// @param k_pages,v_pages  [pages, kPageTokens, nkv, D], nq a multiple of nkv
/// @return   [S, nq, D].
/// @throws c10::Error if the device or the release of torch cannot
at::Tensor paged_attention(const at::Tensor& q, const at::Tensor& k_pages,
                           const at::Tensor& v_pages, const PageTable& table);
/// True if choose_attention() is kVarlen and paged_attention() gives a known answer on the device;
/// tried once for each head size.
bool has_paged_attention(const AttentionCase& input);

}  // namespace rematch
