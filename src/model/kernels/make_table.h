#pragma once
#include "model/kernels/attention_kernel.h"
#include "model/kernels/delta_kernel.h"
#include "model/kernels/gemm_kernel.h"
#include "model/kernels/product_kernel.h"
#include "model/kernels/rows_kernel.h"
#include "model/kernels/table.h"

namespace rematch::kernels {

/// The table of an instruction set: all templates instantiated with its Vec.
template <class V>
constexpr KernelTable make_table() {
  using Rows = RowKernels<V>;
  KernelTable table;
  table.interleave = GemmKernel<V, float>::interleave;
  table.gemm[0] = GemmKernel<V, float>::run;
  table.gemm[1] = GemmKernel<V, uint16_t>::run;
  table.attend[0] = AttentionKernel<V, float>::attend;
  table.attend[1] = AttentionKernel<V, uint16_t>::attend;
  table.attend_span[0] = AttentionKernel<V, float>::attend_span;
  table.attend_span[1] = AttentionKernel<V, uint16_t>::attend_span;
  // results of spans are float32 for both Storages
  table.combine_spans = AttentionKernel<V, float>::combine_spans;
  table.delta = DeltaKernel<V>::run;
  table.product = ProductKernel<V>::run;
  table.rms_norm = Rows::rms_norm;
  table.layer_norm = Rows::layer_norm;
  table.rotate = Rows::rotate;
  table.add = Rows::add;
  table.silu_mul = Rows::silu_mul;
  table.sigmoid_mul = Rows::sigmoid_mul;
  table.gelu_tanh = Rows::gelu_tanh;
  table.gelu_erf = Rows::gelu_erf;
  table.exp = Rows::exp;
  table.softmax_sum = Rows::softmax_sum;
  table.store_bfloat16 = Rows::template convert<float, uint16_t>;
  table.load_bfloat16 = Rows::template convert<uint16_t, float>;
  return table;
}

}  // namespace rematch::kernels
