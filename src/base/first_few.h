#pragma once
#include <string>
#include <vector>

namespace rematch {

/// The first of `parts`, between commas, with ", …" for more.
std::string first_few(std::vector<std::string> parts, size_t most = 3);

}  // namespace rematch
