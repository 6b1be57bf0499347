#pragma once
#include <string>

namespace rematch {

/// The text of an address with %20 and the like decoded; %00 stays.
std::string percent_decoded(const std::string& text);

}  // namespace rematch
