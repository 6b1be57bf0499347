#pragma once

namespace rematch {

/// Random changes to training images (`data.augment`) and to the classes that training prompts list
/// (`custom.absent_classes`); off by default.
struct AugmentSettings {
  double hflip = 0;          ///< 0..1: probability of mirroring left to right
  bool hflip_words = false;  ///< mirror even if labels or prompts contain left or right
  double crop = 1;           ///< (0, 1]: smallest share of the image's area to keep; 1 = no crop
  double color = 0;  ///< [0, 1): largest relative change of brightness, contrast and saturation
  double vflip = 0;  ///< 0..1: probability of mirroring top to bottom
  bool vflip_words = false;  ///< mirror even if labels or prompts contain top, lower, above, …
  double rot90 = 0;          ///< 0..1: probability of turning by one, two or three quarters
  bool rot90_words = false;  ///< turn even if labels or prompts contain left, top, …

  double absent_share = 0;  ///< 0..1: share of the prompts that get names of absent classes
  int absent_most = 3;      ///< most names for a prompt, ≥ 1

  bool is_on() const { return moves_objects() || color > 0 || absent_share > 0; }
  /// True if objects may move in the image or be cut off.
  bool moves_objects() const { return hflip > 0 || vflip > 0 || rot90 > 0 || crop < 1; }

  bool operator==(const AugmentSettings&) const = default;
};

}  // namespace rematch
