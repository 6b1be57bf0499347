#include "base/flow/bins.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "base/error.h"

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

Aabb bounding_box(const Geometry& geometry) {
  REMATCH_CHECK(geometry.bins.size() >= 2, "a geometry without coordinates");
  Aabb box{geometry.bins[0], geometry.bins[1], geometry.bins[0], geometry.bins[1]};
  for (size_t i = 0; i + 1 < geometry.bins.size(); i += 2) {
    box.min_x = std::min<int64_t>(box.min_x, geometry.bins[i]);
    box.max_x = std::max<int64_t>(box.max_x, geometry.bins[i]);
    box.min_y = std::min<int64_t>(box.min_y, geometry.bins[i + 1]);
    box.max_y = std::max<int64_t>(box.max_y, geometry.bins[i + 1]);
  }
  return box;
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
