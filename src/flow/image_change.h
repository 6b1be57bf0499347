#pragma once
#include <array>
#include <compare>
#include <cstdint>

namespace rematch {

/// A change to a decoded picture before the model sees it (`data.augment`); fields are in the order
/// of application. The picture keeps its size. All integers, so equal changes give equal bytes.
struct ImageChange {
  /// left, top, width, height in pixels of the file; the crop is scaled to the full size. Width 0:
  /// no crop
  std::array<int64_t, 4> crop_px{};
  int64_t is_flipped = 0;  ///< 1: mirrored left to right
  /// brightness, contrast, saturation in thousandths
  std::array<int64_t, 3> color{1000, 1000, 1000};

  bool has_crop() const { return crop_px[2] > 0; }
  bool is_any() const { return *this != ImageChange{}; }
  auto operator<=>(const ImageChange&) const = default;

  template <typename Wire>
  friend void fields(Wire& wire, ImageChange& change) {
    wire(change.crop_px, change.is_flipped, change.color);
  }
};

}  // namespace rematch
