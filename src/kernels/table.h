#pragma once
#include "kernels/attention.h"
#include "kernels/gemm.h"
#include "kernels/types.h"

namespace rematch::kernels {

/// Everything that exists once for each instruction set. The public functions (gemm.h, attention.h,
/// rows.h) go through the table in use.
struct KernelTable {
  const char* name = "";
  void (*interleave)(const ConstRows&, Range, Range, const InterleavedRows&) = nullptr;
  /// One function for each Storage.
  void (*gemm[2])(const PackedWeights&, const InterleavedRows&, const Rows&, Range, Into) = {};
  void (*attend[2])(const CacheLayer&, const AttentionTask&, const AttentionScratch&) = {};
  void (*attend_span[2])(const CacheLayer&, const AttentionTask&, int64_t, const AttentionScratch&,
                         float*) = {};
  void (*combine_spans)(const CacheLayer&, const AttentionTask&, int64_t, const float*,
                        const AttentionScratch&) = nullptr;
  void (*rms_norm)(const float*, const float*, int64_t, float, float*) = nullptr;
  void (*layer_norm)(const float*, const float*, const float*, int64_t, float, float*) = nullptr;
  void (*rotate)(float*, const float*, const float*, int64_t) = nullptr;
  void (*add)(float*, const float*, int64_t) = nullptr;
  void (*silu_mul)(float*, const float*, int64_t) = nullptr;
  void (*gelu_tanh)(float*, int64_t) = nullptr;
  void (*gelu_erf)(float*, int64_t) = nullptr;
  void (*exp)(const float*, int64_t, float*) = nullptr;
  SoftmaxSum (*softmax_sum)(const float*, int64_t) = nullptr;
  void (*store_float)(const float*, int64_t, float*) = nullptr;
  void (*store_bfloat16)(const float*, int64_t, uint16_t*) = nullptr;
  void (*load_float)(const float*, int64_t, float*) = nullptr;
  void (*load_bfloat16)(const uint16_t*, int64_t, float*) = nullptr;
};

const KernelTable& portable_table();
const KernelTable& avx2_table();
const KernelTable& avx512_table();

}  // namespace rematch::kernels
