#pragma once
#include <string>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// The first of `parts`, between commas, with ", …" for more.
std::string first_few(Strings parts, size_t most = 3);

}  // namespace rematch
