#pragma once
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// True if a text contains the word left or right, in any letter case: "Left-hand glove", not
/// "bright".
bool says_a_side(std::string_view text);

/// Refuses mirrored pictures for texts that say left or right. @param prompts  name of the key,
/// text
/// @throws UserError (config) with the first places and their number
void check_side_words(const std::vector<Sample>& samples,
                      const std::vector<std::pair<std::string, std::string>>& prompts);

}  // namespace rematch
