#pragma once
#include <cstdint>
#include <vector>

#include "base/random.h"
#include "model/kernels/isa.h"

namespace rematch::test {

/// Runs `check` once for every instruction set of this processor, the one in use before afterwards.
template <class Check>
void for_each_isa(const Check& check) {
  const kernels::Isa before = kernels::isa_in_use();
  for (const kernels::Isa isa : kernels::available_isas()) {
    kernels::use_isa(isa);
    check(isa);
  }
  kernels::use_isa(before);
}

/// Numbers in -1 … 1 that depend on the key alone.
inline std::vector<float> noise(int64_t size, uint64_t key) {
  std::vector<float> values(static_cast<size_t>(size));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(2.0 * random_uniform(key, i) - 1.0);
  return values;
}

/// The upper halves: what a bfloat16 tensor holds.
inline std::vector<uint16_t> as_bfloat16(const std::vector<float>& values) {
  std::vector<uint16_t> halves(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    uint32_t bits;
    static_assert(sizeof(bits) == sizeof(float));
    __builtin_memcpy(&bits, &values[i], sizeof(bits));
    halves[i] = static_cast<uint16_t>(bits >> 16);
  }
  return halves;
}

inline float from_bfloat16(uint16_t half) {
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  __builtin_memcpy(&value, &bits, sizeof(value));
  return value;
}

}  // namespace rematch::test
