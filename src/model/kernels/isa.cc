#include "model/kernels/isa.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "model/kernels/product.h"
#include "model/kernels/rows.h"
#include "model/kernels/table.h"

namespace rematch::kernels {
namespace {

bool is_supported(Isa isa) {
#ifdef REMATCH_KERNELS_X86
  __builtin_cpu_init();
  if (isa == Isa::kAvx2) return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (isa == Isa::kAvx512) {
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
           is_supported(Isa::kAvx2);
  }
#endif
  return isa == Isa::kPortable;
}

const KernelTable& get_table(Isa isa) {
#ifdef REMATCH_KERNELS_X86
  if (isa == Isa::kAvx512) return avx512_table();
  if (isa == Isa::kAvx2) return avx2_table();
#endif
  return portable_table();
}

// Ignores an unknown or unavailable name: only the last bits of results depend on it.
Isa default_isa() {
  const std::vector<Isa> isas = available_isas();
  const char* wanted = std::getenv("REMATCH_ISA");
  for (const Isa isa : isas) {
    if (wanted != nullptr && std::string(wanted) == isa_name(isa)) return isa;
  }
  return isas.back();
}

std::atomic<Isa>& selected_isa() {
  static std::atomic<Isa> isa{default_isa()};
  return isa;
}

const KernelTable& table() { return get_table(selected_isa().load(std::memory_order_relaxed)); }

int slot(Storage storage) { return storage == Storage::kFloat ? 0 : 1; }

}  // namespace

const char* isa_name(Isa isa) {
  return isa == Isa::kAvx512 ? "avx512" : isa == Isa::kAvx2 ? "avx2" : "portable";
}

std::vector<Isa> available_isas() {
  std::vector<Isa> isas;
  for (const Isa isa : {Isa::kPortable, Isa::kAvx2, Isa::kAvx512}) {
    if (is_supported(isa)) isas.push_back(isa);
  }
  return isas;
}

Isa isa_in_use() { return selected_isa().load(); }

void use_isa(Isa isa) {
  REMATCH_CHECK(is_supported(isa), isa_name(isa));
  selected_isa().store(isa);
}

void interleave(const ConstRows& x, Range rows, Range columns, const InterleavedRows& out) {
  table().interleave(x, rows, columns, out);
}

void gemm(const PackedWeights& w, const InterleavedRows& x, const Rows& y, Range columns,
          Into into) {
  REMATCH_CHECK(
      columns.begin % kPanel == 0 && (columns.end % kPanel == 0 || columns.end == w.num_outputs),
      "columns cut a panel");
  REMATCH_CHECK(x.num_inputs == w.num_inputs, "rows and weights differ in width");
  if (x.num_rows > 0 && columns.size() > 0) table().gemm[slot(w.storage)](w, x, y, columns, into);
}

void store_token(const CacheLayer& cache, int64_t block, int64_t kv_head, int64_t slot,
                 const float* key, const float* value) {
  const int64_t offset = cache.head_offset(block, kv_head),
                value_offset = offset + slot * cache.head_dim;
  if (cache.storage == Storage::kFloat) {
    float* const keys = static_cast<float*>(cache.keys) + offset + slot;
    for (int64_t d = 0; d < cache.head_dim; ++d) keys[d * cache.block_len] = key[d];
    store_as(value, cache.head_dim, cache.storage,
             static_cast<float*>(cache.values) + value_offset);
  } else {
    uint16_t* const keys = static_cast<uint16_t*>(cache.keys) + offset + slot;
    for (int64_t d = 0; d < cache.head_dim; ++d)
      table().store_bfloat16(key + d, 1, keys + d * cache.block_len);
    store_as(value, cache.head_dim, cache.storage,
             static_cast<uint16_t*>(cache.values) + value_offset);
  }
}

void attend(const CacheLayer& cache, const AttentionTask& task, const AttentionScratch& scratch) {
  table().attend[slot(cache.storage)](cache, task, scratch);
}

void attend_span(const CacheLayer& cache, const AttentionTask& task, int64_t span,
                 const AttentionScratch& scratch, float* partial) {
  table().attend_span[slot(cache.storage)](cache, task, span, scratch, partial);
}

void combine_spans(const CacheLayer& cache, const AttentionTask& task, int64_t num_spans,
                   const float* partials, const AttentionScratch& scratch) {
  table().combine_spans(cache, task, num_spans, partials, scratch);
}

void delta(const DeltaShape& shape, const DeltaTask& task, float* scratch) {
  REMATCH_CHECK(task.num_known >= 1 && task.num_known <= task.num_rows &&
                    task.num_rows - task.num_known <= kMaxDeltaDrafts,
                "rows of a delta task");
  REMATCH_CHECK(task.num_folded % kDeltaChunk == 0 && task.num_folded <= task.first_position &&
                    task.first_position - task.num_folded <= kDeltaRing,
                "tokens of a delta state");
  table().delta(shape, task, scratch);
}

void product(const Strided& a, const Strided& b, const ProductSize& size, float sign, bool adds,
             float* c) {
  table().product(a, b, size, sign, adds, c);
}

void rms_norm(const float* x, const float* weight, int64_t width, float eps, float* y) {
  table().rms_norm(x, weight, width, eps, y);
}

void layer_norm(const float* x, const float* weight, const float* bias, int64_t width, float eps,
                float* y) {
  table().layer_norm(x, weight, bias, width, eps, y);
}

void rotate(float* x, const float* cos, const float* sin, int64_t width) {
  table().rotate(x, cos, sin, width);
}
void add(float* x, const float* y, int64_t width) { table().add(x, y, width); }
void silu_mul(float* gate, const float* up, int64_t width) { table().silu_mul(gate, up, width); }
void sigmoid_mul(float* x, const float* gate, int64_t width) {
  table().sigmoid_mul(x, gate, width);
}
void gelu_tanh(float* x, int64_t width) { table().gelu_tanh(x, width); }
void gelu_erf(float* x, int64_t width) { table().gelu_erf(x, width); }
void exp(const float* x, int64_t width, float* y) { table().exp(x, width, y); }
SoftmaxSum softmax_sum(const float* x, int64_t width) { return table().softmax_sum(x, width); }

void store_as(const float* x, int64_t width, Storage storage, void* out) {
  if (storage == Storage::kFloat) {
    std::copy_n(x, width, static_cast<float*>(out));
  } else {
    table().store_bfloat16(x, width, static_cast<uint16_t*>(out));
  }
}

void load_from(const void* x, Storage storage, int64_t width, float* out) {
  if (storage == Storage::kFloat) {
    std::copy_n(static_cast<const float*>(x), width, out);
  } else {
    table().load_bfloat16(static_cast<const uint16_t*>(x), width, out);
  }
}

}  // namespace rematch::kernels
