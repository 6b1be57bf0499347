#pragma once
#include <array>
#include <compare>
#include <cstdint>

namespace rematch {

/// A change to a decoded picture before the model sees it (`data.augment`), all of it integers, so
/// equal changes give equal bytes. The picture keeps its size, except that a quarter turn swaps
/// width and height.
struct ImageChange {
  /// Parts of `orientation`, applied in this order.
  enum Orientation : int64_t {
    kMirrored = 1,     ///< left to right
    kUpsideDown = 2,   ///< mirrored top to bottom
    kQuarterTurn = 4,  ///< clockwise, times 0..3
  };

  /// left, top, width, height in pixels of the file; the crop is scaled to the full size. Width 0:
  /// no crop
  std::array<int64_t, 4> crop_px{};
  int64_t orientation = 0;  ///< sum of Orientation's parts, 0..15
  /// brightness, contrast, saturation in thousandths
  std::array<int64_t, 3> color{1000, 1000, 1000};

  bool has_crop() const { return crop_px[2] > 0; }
  bool is_mirrored() const { return (orientation & kMirrored) != 0; }
  bool is_upside_down() const { return (orientation & kUpsideDown) != 0; }
  int num_quarter_turns() const { return static_cast<int>(orientation / kQuarterTurn); }
  bool swaps_sides() const { return num_quarter_turns() % 2 != 0; }
  bool is_any() const { return *this != ImageChange{}; }
  auto operator<=>(const ImageChange&) const = default;

  friend void fields(auto& wire, ImageChange& change) {
    wire(change.crop_px, change.orientation, change.color);
  }
};

}  // namespace rematch
