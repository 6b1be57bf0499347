#include "model/kernels/bfloat16_attention.h"

#include "base/error.h"
#include "model/kernels/bfloat16_attention_avx512.h"
#include "model/kernels/isa.h"

namespace rematch::kernels {

#ifdef REMATCH_KERNELS_X86

bool has_bfloat16_attention() {
  __builtin_cpu_init();
  static const bool has_products =
      __builtin_cpu_supports("avx512bf16") && !__builtin_cpu_is("intel");
  return has_products && isa_in_use() == Isa::kAvx512;
}

void bfloat16_attention(const AttentionHead& head, const HalfRows& out, float* log_sums) {
  REMATCH_CHECK(has_bfloat16_attention() && head.head_dim % 16 == 0, "attention in bfloat16");
  bfloat16_attention_avx512(head, out, log_sums);
}

void bfloat16_attention_gradients(const AttentionHead& head, const AttentionHeadOutput& output,
                                  const HalfRows& g_q, float* g_k, float* g_v) {
  REMATCH_CHECK(has_bfloat16_attention() && head.head_dim % 16 == 0, "attention in bfloat16");
  bfloat16_attention_gradients_avx512(head, output, g_q, g_k, g_v);
}

#else

bool has_bfloat16_attention() { return false; }
void bfloat16_attention(const AttentionHead&, const HalfRows&, float*) {
  REMATCH_CHECK(false, "no attention in bfloat16");
}
void bfloat16_attention_gradients(const AttentionHead&, const AttentionHeadOutput&, const HalfRows&,
                                  float*, float*) {
  REMATCH_CHECK(false, "no attention in bfloat16");
}

#endif

}  // namespace rematch::kernels
