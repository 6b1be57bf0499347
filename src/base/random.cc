#include "base/random.h"

#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <utility>

namespace rematch {
namespace {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection that passes BigCrush on
// counters.
uint64_t mix(uint64_t z) {
  z += 0x9E3779B97F4A7C15ULL;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  return z ^ (z >> 31);
}

}  // namespace

uint64_t random_key(std::initializer_list<uint64_t> parts) {
  uint64_t key = 0x52656D61746368ULL;
  for (const uint64_t part : parts) key = mix(key ^ mix(part));
  return key;
}

uint64_t random_bits(uint64_t key, uint64_t counter) {
  return mix(key ^ mix(counter + 0xD1B54A32D192ED03ULL));
}

double random_uniform(uint64_t key, uint64_t counter) {
  return static_cast<double>(random_bits(key, counter) >> 11) * 0x1.0p-53;
}

double random_normal(uint64_t key, uint64_t counter) {
  // the logarithm of (0, 1]
  const double radius = std::sqrt(-2.0 * std::log(1.0 - random_uniform(key, 2 * counter)));
  return radius * std::cos(2.0 * std::numbers::pi * random_uniform(key, 2 * counter + 1));
}

uint64_t random_below(uint64_t key, uint64_t counter, uint64_t bound) {
  return static_cast<uint64_t>(
      (static_cast<unsigned __int128>(random_bits(key, counter)) * bound) >> 64);
}

std::vector<int64_t> random_permutation(uint64_t key, int64_t count) {
  std::vector<int64_t> order(static_cast<size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  for (int64_t i = count - 1; i > 0; --i) {
    const auto j = static_cast<int64_t>(
        random_below(key, static_cast<uint64_t>(i), static_cast<uint64_t>(i) + 1));
    std::swap(order[i], order[j]);
  }
  return order;
}

}  // namespace rematch
