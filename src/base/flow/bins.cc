#include "base/flow/bins.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace rematch {
namespace {

constexpr int kLastBin = kNumBins - 1;

/// floor(a / b + 1/2) of integers, exactly.
/// @param a  ≥ 0.
/// @param b  > 0
int64_t divide_rounded(int64_t a, int64_t b) { return (2 * a + b) / (2 * b); }

}  // namespace

int to_bin(double place, double side) {
  const double bin = std::round(kNumBins * place / side);
  return static_cast<int>(std::clamp(bin, 0.0, static_cast<double>(kLastBin)));
}

int NumberScale::number(int bin, size_t coordinate) const {
  const int64_t last = limit(coordinate);
  if (!in_pixels) return static_cast<int>(divide_rounded(int64_t{bin} * last, kLastBin));
  if (bin == kLastBin) return static_cast<int>(last);
  return static_cast<int>(divide_rounded(int64_t{bin} * last, kNumBins));
}

int NumberScale::bin(double number, size_t coordinate) const {
  if (in_pixels) return to_bin(number, limit(coordinate));
  return static_cast<int>(std::floor(number * kLastBin / limit(coordinate) + 0.5));
}

}  // namespace rematch
