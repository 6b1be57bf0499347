#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "flow/grid.h"

namespace rematch {

/// Settings of position_ids.
struct PositionOptions {
  int64_t image_token_id = 151655;
  int64_t merge_size = 2;
};

/// Three rows (t, h, w) of positions.
struct Positions {
  std::array<std::vector<int64_t>, 3> rows;
  int64_t next = 0;  ///< position of the token that would follow (its three rows are equal)
};

/// mRoPE positions of one segment (MODEL 5): text counts up, an image spreads over (t, h, w) and
/// moves the counter by its longer merged side.
/// @param token_ids  with image pads expanded
/// @param grids      patches (t, h, w) of each image, in order
/// @throws UserError (data) when pads and grids disagree; names `where`
Positions position_ids(const std::vector<int64_t>& token_ids, const std::vector<GridThw>& grids,
                       const PositionOptions& options, const std::string& where = "row");

}  // namespace rematch
