#pragma once
#include "model/kernels/attention.h"
#include "model/kernels/delta.h"
#include "model/kernels/gemm.h"
#include "model/kernels/product.h"
#include "model/kernels/rows.h"
#include "model/kernels/types.h"

namespace rematch::kernels {

/// The functions that are compiled once per instruction set. The public functions (gemm.h,
/// attention.h, rows.h) call those of the table in use.
struct KernelTable {
  decltype(&kernels::interleave) interleave = nullptr;
  // one function per Storage
  decltype(&kernels::gemm) gemm[2] = {};
  decltype(&kernels::attend) attend[2] = {};
  decltype(&kernels::attend_span) attend_span[2] = {};
  decltype(&kernels::combine_spans) combine_spans = nullptr;
  decltype(&kernels::delta) delta = nullptr;
  decltype(&kernels::product) product = nullptr;
  decltype(&kernels::rms_norm) rms_norm = nullptr;
  decltype(&kernels::layer_norm) layer_norm = nullptr;
  decltype(&kernels::rotate) rotate = nullptr;
  decltype(&kernels::add) add = nullptr;
  decltype(&kernels::silu_mul) silu_mul = nullptr;
  decltype(&kernels::sigmoid_mul) sigmoid_mul = nullptr;
  decltype(&kernels::gelu_tanh) gelu_tanh = nullptr;
  decltype(&kernels::gelu_erf) gelu_erf = nullptr;
  decltype(&kernels::exp) exp = nullptr;
  decltype(&kernels::softmax_sum) softmax_sum = nullptr;
  void (*store_bfloat16)(const float*, int64_t, uint16_t*) = nullptr;
  void (*load_bfloat16)(const uint16_t*, int64_t, float*) = nullptr;
};

const KernelTable& portable_table();
const KernelTable& avx2_table();
const KernelTable& avx512_table();

}  // namespace rematch::kernels
