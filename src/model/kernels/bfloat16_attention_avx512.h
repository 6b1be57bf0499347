#pragma once
#include "model/kernels/bfloat16_attention.h"

namespace rematch::kernels {

// The functions of bfloat16_attention.h for processors with AVX-512 BF16.
void bfloat16_attention_avx512(const AttentionHead& head, const HalfRows& out, float* log_sums);
void bfloat16_attention_gradients_avx512(const AttentionHead& head,
                                         const AttentionHeadOutput& output, const HalfRows& g_q,
                                         float* g_k, float* g_v);

}  // namespace rematch::kernels
