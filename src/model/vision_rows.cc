#include "model/vision_rows.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "model/nn/upload.h"

namespace rematch {
namespace {

// Two taps of the learned table and their weights for each index of an axis; the order of
// operations determines the bits (MODEL 3.2).
struct AxisTaps {
  at::Tensor low, high;                ///< int64
  at::Tensor low_weight, high_weight;  ///< float32
};

AxisTaps axis_taps(const at::Tensor& index, int64_t size, int64_t side) {
  const at::Tensor source = index.to(at::kFloat) * static_cast<double>(side - 1) /
                            static_cast<double>(std::max<int64_t>(size - 1, 1));
  const at::Tensor floor = at::floor(source);
  const at::Tensor offset = source - floor;
  const at::Tensor low = floor.to(at::kLong);
  return {low.clamp(0, side - 1), (low + 1).clamp(0, side - 1), (1 - offset.abs()).clamp_min(0),
          (1 - (offset - 1).abs()).clamp_min(0)};
}

// Learned positions of one frame: bilinear interpolation of the square table in float32, rounded to
// the table's dtype.
at::Tensor frame_positions(const at::Tensor& coordinates, int64_t height, int64_t width,
                           const VisionDescription& vision, const at::Tensor& pos_embed) {
  int64_t side =
      static_cast<int64_t>(std::sqrt(static_cast<double>(vision.num_position_embeddings)));
  const AxisTaps rows = axis_taps(coordinates.select(1, 0), height, side);
  const AxisTaps columns = axis_taps(coordinates.select(1, 1), width, side);
  const auto corner = [&](const at::Tensor& row, const at::Tensor& row_weight,
                          const at::Tensor& column, const at::Tensor& column_weight) {
    const at::Tensor index = upload(row * side + column, pos_embed.device());
    const at::Tensor weight = upload(row_weight * column_weight, pos_embed.device());
    return at::embedding(pos_embed, index).to(at::kFloat) * weight.unsqueeze(1);
  };
  at::Tensor sum = corner(rows.low, rows.low_weight, columns.low, columns.low_weight);
  sum = sum + corner(rows.low, rows.low_weight, columns.high, columns.high_weight);
  sum = sum + corner(rows.high, rows.high_weight, columns.low, columns.low_weight);
  sum = sum + corner(rows.high, rows.high_weight, columns.high, columns.high_weight);
  return sum.to(pos_embed.scalar_type());
}

// The attention windows of one frame, row by row; windows at the right and lower edges are smaller.
struct Windows {
  at::Tensor order;           ///< block-order row of each row
  at::Tensor token;           ///< position of each block-order token
  std::vector<int64_t> lens;  ///< rows of each window
};

Windows make_windows(int64_t height, int64_t width, const VisionDescription& vision) {
  const int64_t merge = vision.spatial_merge_size, side = vision.window() / merge,
                rows = height / merge, columns = width / merge;
  const at::Tensor tokens =
      at::arange(rows * columns, at::TensorOptions().dtype(at::kLong)).view({rows, columns});
  Windows windows;
  std::vector<at::Tensor> parts;
  for (int64_t top = 0; top < rows; top += side) {
    for (int64_t left = 0; left < columns; left += side) {
      parts.push_back(tokens.slice(0, top, top + side).slice(1, left, left + side).reshape({-1}));
      windows.lens.push_back(parts.back().numel() * vision.merge_area());
    }
  }
  const at::Tensor token_order = at::cat(parts);
  windows.token = at::argsort(token_order);
  windows.order = (token_order.unsqueeze(1) * vision.merge_area() +
                   at::arange(vision.merge_area(), tokens.options()))
                      .reshape({-1});
  return windows;
}

at::Tensor join(const std::vector<at::Tensor>& parts) {
  return parts.size() == 1 ? parts[0] : at::cat(parts, 0);
}

}  // namespace

at::Tensor block_order_coordinates(int64_t height, int64_t width, int64_t merge) {
  const auto options = at::TensorOptions().dtype(at::kLong);
  const auto in_blocks = [&](const at::Tensor& grid) {
    return grid.expand({height, width})
        .reshape({height / merge, merge, width / merge, merge})
        .transpose(1, 2)
        .reshape({-1});
  };
  return at::stack({in_blocks(at::arange(height, options).unsqueeze(1)),
                    in_blocks(at::arange(width, options).unsqueeze(0))},
                   1);
}

VisionRows make_vision_rows(const std::vector<GridThw>& grid_thw, const VisionDescription& vision,
                            const at::Tensor& pos_embed, at::Device device) {
  struct Frame {
    at::Tensor position;
    RopeTable rope;
    Windows windows;
  };
  const bool has_windows = vision.window() > 0;
  std::map<std::array<int64_t, 2>, Frame> frames;  // by height and width
  std::vector<at::Tensor> positions, cosines, sines, signed_sines, orders, tokens;
  VisionRows rows;
  int64_t num_rows = 0;
  for (const auto& [t, height, width] : grid_thw) {
    auto [found, is_new] = frames.try_emplace({height, width});
    Frame& frame = found->second;
    if (is_new) {
      at::Tensor coordinates = block_order_coordinates(height, width, vision.spatial_merge_size);
      if (has_windows) {
        frame.windows = make_windows(height, width, vision);
        coordinates = coordinates.index_select(0, frame.windows.order);
      }
      if (pos_embed.defined())
        frame.position = frame_positions(coordinates, height, width, vision, pos_embed);
      frame.rope = vision_rope_table(coordinates, vision.rope_theta, vision.head_dim(), device);
    }
    for (int64_t i = 0; i < t; ++i) {
      positions.push_back(frame.position);
      cosines.push_back(frame.rope.cos);
      sines.push_back(frame.rope.sin);
      signed_sines.push_back(frame.rope.signed_sin);
      rows.frame_lens.push_back(height * width);
      if (has_windows) {
        rows.window_lens.insert(rows.window_lens.end(), frame.windows.lens.begin(),
                                frame.windows.lens.end());
        orders.push_back(frame.windows.order + num_rows);
        tokens.push_back(frame.windows.token + num_rows / vision.merge_area());
      }
      num_rows += height * width;
    }
  }
  if (pos_embed.defined()) rows.position_ND = join(positions);
  rows.rope = {join(cosines), join(sines),
               signed_sines[0].defined() ? join(signed_sines) : at::Tensor()};
  if (has_windows) {
    rows.order_N = upload(join(orders), device);
    rows.token_M = upload(join(tokens), device);
  }
  return rows;
}

}  // namespace rematch
