#pragma once
#include <string>
#include <vector>

namespace rematch {

using Strings = std::vector<std::string>;

}  // namespace rematch
