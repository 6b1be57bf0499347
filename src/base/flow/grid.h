#pragma once
#include <array>
#include <cstdint>

namespace rematch {

/// Patches of an image: time, height, width (before the spatial merge).
using GridThw = std::array<int64_t, 3>;

}  // namespace rematch
