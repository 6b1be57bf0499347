#pragma once
#include <immintrin.h>

#include <cstdint>

// Included by kernels_avx512.cc only, which is compiled for this instruction set.

namespace rematch::kernels {

/// Sixteen floats in one register. Kernels are templates over this type; the other instruction sets
/// have the same members.
struct VecAvx512 {
  using F = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kRegisters = 32;

  static __mmask16 head(int n) { return static_cast<__mmask16>((1U << n) - 1U); }

  static F zero() { return _mm512_setzero_ps(); }
  static F set1(float x) { return _mm512_set1_ps(x); }
  static F load(const float* p) { return _mm512_loadu_ps(p); }
  static F load(const float* p, int n) { return _mm512_maskz_loadu_ps(head(n), p); }
  static F load(const uint16_t* p) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static F load(const uint16_t* p, int n) { return widen(_mm256_maskz_loadu_epi16(head(n), p)); }
  static void store(float* p, F x) { _mm512_storeu_ps(p, x); }
  static void store(float* p, F x, int n) { _mm512_mask_storeu_ps(p, head(n), x); }
  static void store(uint16_t* p, F x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(x));
  }
  static void store(uint16_t* p, F x, int n) { _mm256_mask_storeu_epi16(p, head(n), narrow(x)); }

  static F add(F a, F b) { return _mm512_add_ps(a, b); }
  static F sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static F mul(F a, F b) { return _mm512_mul_ps(a, b); }
  static F div(F a, F b) { return _mm512_div_ps(a, b); }
  static F max(F a, F b) { return _mm512_max_ps(a, b); }
  static F min(F a, F b) { return _mm512_min_ps(a, b); }
  /// a·b + c, rounded once
  static F fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static F round(F a) {
    return _mm512_roundscale_ps(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  }
  /// 2^n for integral n in -126 … 127
  static F exp2i(F n) {
    return _mm512_castsi512_ps(
        _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
  }
  /// a where x ≥ bound, else 0
  static F where_at_least(F x, F bound, F a) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, bound, _CMP_GE_OQ), a);
  }

  /// Sums of each of N registers (a multiple of 4): lanes i and i+8, then i and i+4, i and i+2, i
  /// and i+1.
  template <int N>
  [[gnu::always_inline]] static void sum_each(const F* x, float* out) {
    if constexpr (N >= 16) {
      const F a = quarters(x[0], x[1], x[2], x[3]), b = quarters(x[4], x[5], x[6], x[7]);
      const F c = quarters(x[8], x[9], x[10], x[11]), d = quarters(x[12], x[13], x[14], x[15]);
      // Lane group g of the result holds x[g], x[4 + g], x[8 + g] and x[12 + g].
      const F sums = in_groups(in_groups_of_two(a, b), in_groups_of_two(c, d));
      store(out,
            _mm512_permutexvar_ps(
                _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15), sums));
      sum_each<N - 16>(x + 16, out + 16);
    } else if constexpr (N >= 8) {
      const F a = quarters(x[0], x[1], x[2], x[3]), b = quarters(x[4], x[5], x[6], x[7]);
      const F two = in_groups_of_two(a, b);
      const F sums = in_groups(two, two);
      const F ordered = _mm512_permutexvar_ps(
          _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 0, 0, 0, 0, 0, 0, 0, 0), sums);
      _mm256_storeu_ps(out, _mm512_castps512_ps256(ordered));
      sum_each<N - 8>(x + 8, out + 8);
    } else if constexpr (N >= 4) {
      const F a = quarters(x[0], x[1], x[2], x[3]);
      const F two = in_groups_of_two(a, a);
      const F sums = in_groups(two, two);
      const F ordered = _mm512_permutexvar_ps(
          _mm512_setr_epi32(0, 4, 8, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0), sums);
      _mm_storeu_ps(out, _mm512_castps512_ps128(ordered));
      sum_each<N - 4>(x + 4, out + 4);
    }
  }
  static float sum(F a) {
    const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
    const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
    const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    return _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps(two, two, 1)));
  }
  static float max_lane(F a) { return _mm512_reduce_max_ps(a); }

 private:
  // Four lanes of partial sums per argument, in consecutive groups of lanes.
  static F quarters(F a, F b, F c, F d) {
    // a0-3 a4-7 b0-3 b4-7
    const F ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    const F cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xEE));
    return _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
  }
  // In each group of lanes: a0+a2 b0+b2 a1+a3 b1+b3.
  static F in_groups_of_two(F a, F b) {
    return _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
  }
  // In each group of lanes: sums of two of `ab`, then of two of `cd`.
  static F in_groups(F ab, F cd) {
    return _mm512_add_ps(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xEE));
  }
  static F widen(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  // To nearest, ties to even.
  static __m256i narrow(F x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    const __m512i rounded =
        _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
  }
};

}  // namespace rematch::kernels
