#pragma once
#include <immintrin.h>

#include <cstdint>

// Included by kernels_avx2.cc only, which is compiled for this instruction set (with FMA).

namespace rematch::kernels {

/// Eight floats in one register; see VecAvx512.
struct VecAvx2 {
  using F = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kRegisters = 16;

  static __m256i head(int n) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }

  static F zero() { return _mm256_setzero_ps(); }
  static F set1(float x) { return _mm256_set1_ps(x); }
  static F load(const float* p) { return _mm256_loadu_ps(p); }
  static F load(const float* p, int n) { return _mm256_maskload_ps(p, head(n)); }
  static F load(const uint16_t* p) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static F load(const uint16_t* p, int n) {
    alignas(16) uint16_t part[8] = {};
    for (int i = 0; i < n; ++i) part[i] = p[i];
    return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(part)));
  }
  static void store(float* p, F x) { _mm256_storeu_ps(p, x); }
  static void store(float* p, F x, int n) { _mm256_maskstore_ps(p, head(n), x); }
  static void store(uint16_t* p, F x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(x));
  }
  static void store(uint16_t* p, F x, int n) {
    alignas(16) uint16_t part[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(part), narrow(x));
    for (int i = 0; i < n; ++i) p[i] = part[i];
  }

  static F add(F a, F b) { return _mm256_add_ps(a, b); }
  static F sub(F a, F b) { return _mm256_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm256_mul_ps(a, b); }
  static F div(F a, F b) { return _mm256_div_ps(a, b); }
  static F max(F a, F b) { return _mm256_max_ps(a, b); }
  static F min(F a, F b) { return _mm256_min_ps(a, b); }
  static F fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static F round(F a) { return _mm256_round_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC); }
  static F exp2i(F n) {
    return _mm256_castsi256_ps(
        _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
  }
  static F where_at_least(F x, F bound, F a) {
    return _mm256_and_ps(_mm256_cmp_ps(x, bound, _CMP_GE_OQ), a);
  }

  /// Sums of each of N registers (a multiple of 4): lanes i and i+4, then i and i+2, i and i+1.
  template <int N>
  [[gnu::always_inline]] static void sum_each(const F* x, float* out) {
#pragma GCC unroll 8
    for (int i = 0; i < N; i += 4) sum4(x[i], x[i + 1], x[i + 2], x[i + 3], out + i);
  }
  static float sum(F a) {
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  static float max_lane(F a) {
    const __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
    const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_max_ss(two, _mm_shuffle_ps(two, two, 1)));
  }

 private:
  static void sum4(F a, F b, F c, F d, float* out) {
    // four lanes of a, of c
    const F ac =
        _mm256_add_ps(_mm256_permute2f128_ps(a, c, 0x20), _mm256_permute2f128_ps(a, c, 0x31));
    const F bd =
        _mm256_add_ps(_mm256_permute2f128_ps(b, d, 0x20), _mm256_permute2f128_ps(b, d, 0x31));
    // a02 b02 a13 b13 | c02 d02 c13 d13
    const F two = _mm256_add_ps(_mm256_unpacklo_ps(ac, bd), _mm256_unpackhi_ps(ac, bd));
    const __m128 low = _mm256_castps256_ps128(two), high = _mm256_extractf128_ps(two, 1);
    _mm_storeu_ps(out, _mm_add_ps(_mm_movelh_ps(low, high), _mm_movehl_ps(high, low)));
  }
  static F widen(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  static __m128i narrow(F x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded =
        _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i high = _mm256_srli_epi32(rounded, 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
  }
};

}  // namespace rematch::kernels
