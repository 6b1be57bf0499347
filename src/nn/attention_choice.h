#pragma once
#include <ATen/ATen.h>

#include <functional>
#include <string>
#include <vector>

namespace rematch {

/// How attention inside the segments of a varlen row is computed.
enum class AttentionKernel {
  kGroups,  ///< SDPA over groups of segments of about equal lengths: every device and dtype
  /// one flash-attention call over the whole row, told by cumulative lengths where segments end
  kVarlen,
};

/// What the choice depends on.
struct AttentionCase {
  at::Device device = at::kCPU;
  at::ScalarType dtype = at::kFloat;
  int64_t head_dim = 0;
};

/// The only place where a kernel is chosen: kVarlen for bfloat16 on a GPU that has the operator,
/// and for head sizes that it takes forward and backward.
/// @param flash_runs  asked only when nothing else speaks against it
AttentionKernel choose_attention(const AttentionCase& one,
                                 const std::function<bool(const at::Device&)>& flash_runs);
/// The same, with flash attention tried on the device once in the life of the process.
AttentionKernel choose_attention(const AttentionCase& one);

/// One line for the log. @param head_dims  of a model's parts
std::string describe_attention(const at::Device& device, at::ScalarType dtype,
                               const std::vector<int64_t>& head_dims);

/// Cumulative lengths of segments on a device, as flash attention reads them.
struct SegmentBounds {
  /// [segments + 1] int32: first row of each segment, then the number of rows
  at::Tensor begins;
  int64_t longest = 0;  ///< rows of the longest segment

  static SegmentBounds of(const std::vector<int64_t>& lens, const at::Device& device);
};

/// Flash attention of every segment of queries over its segment of keys; a device operator with its
/// gradient.
/// @param q  [Tq, nq, D]. @param k,v  [Tk, nkv, D], nq a multiple of nkv
/// @param is_causal  the last query of a segment sees its last key, the one before it all but that
/// one, and so on
/// @return   [Tq, nq, D]. @throws c10::Error where the device has no such operator
at::Tensor varlen_attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v,
                            const SegmentBounds& queries, const SegmentBounds& keys,
                            bool is_causal);

}  // namespace rematch
