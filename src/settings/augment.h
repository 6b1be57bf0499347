#pragma once

namespace rematch {

/// Random changes to the pictures of training samples (`data.augment`); off by default.
struct AugmentSettings {
  double hflip = 0;          ///< 0..1: share of the samples that are mirrored left to right
  bool hflip_words = false;  ///< mirror although labels or prompts say left or right
  double crop = 1;           ///< (0, 1]: smallest share of the picture's area that is kept
  double color = 0;  ///< [0, 1): brightness, contrast and saturation change by up to this share

  bool is_on() const { return moves_objects() || color > 0; }
  /// True if objects may lie elsewhere in the picture, or be cut off.
  bool moves_objects() const { return hflip > 0 || crop < 1; }

  bool operator==(const AugmentSettings&) const = default;
};

}  // namespace rematch
