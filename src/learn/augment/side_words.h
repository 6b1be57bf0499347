#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/flow/sample.h"
#include "base/settings/augment.h"

namespace rematch {

/// The sides that a changed picture exchanges.
enum class SideAxis {
  kLeftRight,  ///< left, right
  kTopBottom   ///< top, bottom, upper, lower, up, down, above, below, beneath, underneath
};

/// True if a text contains a word that names a side, in any letter case and width: "Left-hand
/// glove", "leftmost", "LeftArm", "topleft", "left2"; not "bright", "leftover" or "upright".
/// A word ends at any other character than a letter, and where the letter case changes.
bool names_a_side(std::string_view text, SideAxis axis);

/// Refuses changes of pictures (hflip, vflip, rot90) that would make a text wrong, unless their
/// `…_words` allow it.
/// @param prompts  name of the key, text
/// @throws UserError (config) with a problem for each change: the first places and their number
void check_side_words(const std::vector<Sample>& samples,
                      const std::vector<std::pair<std::string, std::string>>& prompts,
                      const AugmentSettings& settings);

}  // namespace rematch
