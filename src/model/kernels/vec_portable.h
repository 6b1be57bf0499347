#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

namespace rematch::kernels {

/// Four floats, which every compiler keeps in one register; see VecAvx512. Multiplication and
/// addition round separately.
struct VecPortable {
  typedef float F __attribute__((vector_size(16)));
  typedef int32_t I __attribute__((vector_size(16)));
  static constexpr int kLanes = 4;
  static constexpr int kRegisters = 16;

  static F zero() { return F{}; }
  static F set1(float x) { return F{x, x, x, x}; }
  static F load(const float* p) {
    F x;
    std::memcpy(&x, p, sizeof(x));
    return x;
  }
  static F load(const float* p, int n) {
    F x{};
    for (int i = 0; i < n; ++i) x[i] = p[i];
    return x;
  }
  static F load(const uint16_t* p) { return load(p, kLanes); }
  static F load(const uint16_t* p, int n) {
    I bits{};
    for (int i = 0; i < n; ++i) bits[i] = static_cast<int32_t>(static_cast<uint32_t>(p[i]) << 16);
    return as_floats(bits);
  }
  static void store(float* p, F x) { std::memcpy(p, &x, sizeof(x)); }
  static void store(float* p, F x, int n) {
    for (int i = 0; i < n; ++i) p[i] = x[i];
  }
  static void store(uint16_t* p, F x) { store(p, x, kLanes); }
  static void store(uint16_t* p, F x, int n) {
    uint32_t bits[kLanes];
    std::memcpy(bits, &x, sizeof(x));
    for (int i = 0; i < n; ++i)
      p[i] = static_cast<uint16_t>((bits[i] + 0x7FFFU + ((bits[i] >> 16) & 1U)) >> 16);
  }

  static F add(F a, F b) { return a + b; }
  static F sub(F a, F b) { return a - b; }
  static F mul(F a, F b) { return a * b; }
  static F div(F a, F b) { return a / b; }
  static F max(F a, F b) { return a > b ? a : b; }
  static F min(F a, F b) { return a < b ? a : b; }
  static F fma(F a, F b, F c) { return a * b + c; }
  static F round(F a) {
    // Adding 1.5·2^23 leaves no bits for a fraction; valid for |a| < 2^22, which suffices for exp.
    const F magic = set1(12582912.0f);
    return (a + magic) - magic;
  }
  static F exp2i(F n) {
    I bits;
    for (int i = 0; i < kLanes; ++i) bits[i] = (static_cast<int32_t>(n[i]) + 127) << 23;
    return as_floats(bits);
  }
  static F where_at_least(F x, F bound, F a) { return x >= bound ? a : zero(); }

  template <int N>
  static void sum_each(const F* x, float* out) {
    for (int i = 0; i < N; ++i) out[i] = sum(x[i]);
  }
  static float sum(F a) { return (a[0] + a[2]) + (a[1] + a[3]); }
  static float max_lane(F a) {
    const float x = a[0] > a[1] ? a[0] : a[1], y = a[2] > a[3] ? a[2] : a[3];
    return x > y ? x : y;
  }

 private:
  static F as_floats(I bits) {
    F x;
    std::memcpy(&x, &bits, sizeof(x));
    return x;
  }
};

}  // namespace rematch::kernels
