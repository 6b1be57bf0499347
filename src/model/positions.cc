#include "model/positions.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/error.h"

namespace rematch {
namespace {

[[noreturn]] void mismatch(const std::string& where, std::string what) {
  throw data_error(
      {.error = "image pads and images do not match",
       .where = where,
       .what = std::move(what),
       .fix = "pass one image for each run of pads, expanded to one pad for each merged patch "
              "(patch_size × spatial_merge_size pixels a side)"});
}

}  // namespace

Positions position_ids(const std::vector<int64_t>& token_ids, const std::vector<GridThw>& grids,
                       const PositionOptions& options, const std::string& where) {
  Positions positions;
  for (auto& axis : positions.axes) axis.reserve(token_ids.size());
  int64_t cursor = 0;
  size_t image = 0;
  for (size_t i = 0; i < token_ids.size();) {
    if (token_ids[i] != options.image_token_id) {
      for (auto& axis : positions.axes) axis.push_back(cursor);
      ++cursor;
      ++i;
      continue;
    }
    if (image == grids.size())
      mismatch(where,
               fmt::format("a pad at token {} after the last of {} images", i, grids.size()));
    const auto [t, h, w] = grids[image];
    const int64_t height = h / options.merge_size, width = w / options.merge_size;
    for (int64_t k = 0; k < t * height * width; ++k, ++i) {
      if (i == token_ids.size() || token_ids[i] != options.image_token_id) {
        mismatch(where,
                 fmt::format("image {} needs {} pads, found {}", image, t * height * width, k));
      }
      positions.axes[0].push_back(cursor + k / (height * width));
      positions.axes[1].push_back(cursor + k / width % height);
      positions.axes[2].push_back(cursor + k % width);
    }
    cursor += std::max(height, width);
    ++image;
  }
  if (image != grids.size())
    mismatch(where, fmt::format("{} images, but pads for {}", grids.size(), image));
  for (const auto& axis : positions.axes) {
    for (const int64_t position : axis) positions.next = std::max(positions.next, position + 1);
  }
  return positions;
}

}  // namespace rematch
