#pragma once
#include <array>
#include <cstdint>
#include <cstdlib>

namespace rematch {

/// Trial: σ of the digit loss, 0 = off.
inline double digit_sigma() {
  static const double sigma = [] {
    const char* text = std::getenv("REMATCH_DIGITS");
    return text == nullptr ? 0.0 : std::atof(text);
  }();
  return sigma;
}
/// Trial: ids of 0..9, then of what ends the first three numbers of a box, and the last one.
inline std::array<int, 12>& digit_ids() {
  static std::array<int, 12> ids{};
  return ids;
}
inline constexpr const char* kDigitSlots = "digit";

}  // namespace rematch
