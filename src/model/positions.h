#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "base/flow/grid.h"

namespace rematch {

/// Settings of position_ids.
struct PositionOptions {
  int64_t image_token_id = 151655;
  int64_t merge_size = 2;
};

/// Positions on three axes (t, h, w).
struct Positions {
  std::array<std::vector<int64_t>, 3> axes;
  int64_t next = 0;  ///< position of the next token, the same on all three axes
};

/// mRoPE positions of one segment (MODEL 5): text counts up; an image spreads over (t, h, w) and
/// advances the counter by its longer merged side.
/// @param token_ids  with image pads expanded
/// @param grids      patches (t, h, w) of each image, in order
/// @throws UserError (data) if pads and grids do not match, naming `where`
Positions position_ids(const std::vector<int64_t>& token_ids, const std::vector<GridThw>& grids,
                       const PositionOptions& options, const std::string& where = "row");

}  // namespace rematch
