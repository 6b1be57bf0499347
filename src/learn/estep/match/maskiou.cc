#include "learn/estep/match/maskiou.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/flow/bins.h"

namespace rematch {
namespace {

constexpr int64_t kSubPixels = 5;

struct GridPoint {
  int64_t u = 0;  // sub-pixel column
  int64_t v = 0;  // sub-pixel row
};

GridPoint to_grid(const Vertex& vertex) {
  const double scale = kSubPixels;
  return {static_cast<int64_t>(scale * vertex.x + 0.5),
          static_cast<int64_t>(scale * vertex.y + 0.5)};
}

// Appends the samples of one edge: one for every step along its longer axis.
void append_edge(GridPoint from, GridPoint to, std::vector<GridPoint>& samples) {
  const int64_t dx = std::abs(to.u - from.u);
  const int64_t dy = std::abs(to.v - from.v);
  if (dx == 0 && dy == 0) {
    // The reference divides 0 by 0 here; a single sample does not affect the crossings.
    samples.push_back(from);
    return;
  }
  // The slope starts at the smaller end, so that an edge and its reverse round equally.
  const bool along_x = dx >= dy;
  const bool flip = along_x ? from.u > to.u : from.v > to.v;
  if (flip) std::swap(from, to);
  const int64_t steps = along_x ? dx : dy;
  const double slope =
      along_x ? static_cast<double>(to.v - from.v) / dx : static_cast<double>(to.u - from.u) / dy;
  for (int64_t d = 0; d <= steps; ++d) {
    const int64_t t = flip ? steps - d : d;
    const double along = slope * t;
    if (along_x) {
      samples.push_back({from.u + t, static_cast<int64_t>(from.v + along + 0.5)});
    } else {
      samples.push_back({static_cast<int64_t>(from.u + along + 0.5), from.v + t});
    }
  }
}

// Crossings of the boundary with the centres of pixel columns (between sub-columns 5c+2 and 5c+3),
// as sorted column-major indices.
std::vector<int64_t> column_crossings(const std::vector<GridPoint>& samples, int64_t height,
                                      int64_t width) {
  std::vector<int64_t> crossings;
  for (size_t j = 1; j < samples.size(); ++j) {
    if (samples[j].u == samples[j - 1].u) continue;
    const int64_t left = std::min(samples[j].u, samples[j - 1].u);
    if (left < 2 || (left - 2) % kSubPixels != 0) continue;
    const int64_t column = (left - 2) / kSubPixels;
    if (column >= width) continue;
    const int64_t top = std::min(samples[j].v, samples[j - 1].v);
    // ceil((top + 0.5) / 5 - 0.5), clamped to the canvas, in integers.
    const int64_t row = top < 0 ? 0 : std::min((top + 2) / kSubPixels, height);
    crossings.push_back(column * height + row);
  }
  std::ranges::sort(crossings);
  return crossings;
}

// Differences of sorted crossings; an empty run is removed and its neighbours joined.
Mask runs_between(const std::vector<int64_t>& crossings, int64_t num_pixels) {
  Mask mask;
  int64_t previous = 0;
  bool join_next = false;
  for (size_t i = 0; i <= crossings.size(); ++i) {
    const int64_t end = i < crossings.size() ? crossings[i] : num_pixels;
    const int64_t run = end - previous;
    previous = end;
    if (join_next) {
      mask.runs.back() += run;
      join_next = false;
    } else if (run > 0 || i == 0) {
      mask.runs.push_back(run);
    } else {
      join_next = true;
    }
  }
  for (size_t i = 1; i < mask.runs.size(); i += 2) mask.area += mask.runs[i];
  return mask;
}

int clamp_bin(int value) { return std::clamp(value, 0, kNumBins - 1); }

double overlap(int64_t a_min, int64_t a_max, int64_t b_min, int64_t b_max) {
  return static_cast<double>(
      std::max<int64_t>(0, std::min(a_max, b_max) - std::max(a_min, b_min) + 1));
}

Aabb clamp_box(const Aabb& box) {
  const auto clamp = [](int64_t value) { return std::clamp<int64_t>(value, 0, kNumBins - 1); };
  return {clamp(box.min_x), clamp(box.min_y), clamp(box.max_x), clamp(box.max_y)};
}

// IoU of two boxes as sets of bins.
double bin_iou(const Aabb& a, const Aabb& b) {
  const auto area = [](const Aabb& box) {
    return static_cast<double>(box.max_x - box.min_x + 1) * (box.max_y - box.min_y + 1);
  };
  const double intersection =
      overlap(a.min_x, a.max_x, b.min_x, b.max_x) * overlap(a.min_y, a.max_y, b.min_y, b.max_y);
  return intersection / (area(a) + area(b) - intersection);
}

}  // namespace

Mask rasterize_polygon(const std::vector<Vertex>& vertices, int height, int width) {
  REMATCH_CHECK(!vertices.empty() && height >= 1 && width >= 1,
                "rasterize_polygon needs vertices and a canvas");
  std::vector<GridPoint> samples;
  for (size_t i = 0; i < vertices.size(); ++i) {
    append_edge(to_grid(vertices[i]), to_grid(vertices[(i + 1) % vertices.size()]), samples);
  }
  return runs_between(column_crossings(samples, height, width),
                      static_cast<int64_t>(height) * width);
}

Mask rasterize(const Geometry& geometry, int resolution) {
  std::vector<int> bins = geometry.bins;
  if (geometry.kind == GeometryKind::kBbox2d) {
    const Aabb box = bounding_box(geometry);
    const int x1 = static_cast<int>(box.min_x), y1 = static_cast<int>(box.min_y);
    const int x2 = static_cast<int>(box.max_x), y2 = static_cast<int>(box.max_y);
    bins = {x1, y1, x2, y1, x2, y2, x1, y2};
  }
  const auto scale = [resolution](int bin) { return (clamp_bin(bin) * resolution) / 1000.0; };
  std::vector<Vertex> vertices;
  for (size_t i = 0; i + 1 < bins.size(); i += 2)
    vertices.push_back({scale(bins[i]), scale(bins[i + 1])});
  return rasterize_polygon(vertices, resolution, resolution);
}

int64_t intersection_area(const Mask& a, const Mask& b) {
  int64_t shared = 0;
  size_t i = 0, j = 0;
  int64_t left_a = a.runs.empty() ? 0 : a.runs[0];
  int64_t left_b = b.runs.empty() ? 0 : b.runs[0];
  while (i < a.runs.size() && j < b.runs.size()) {
    const int64_t step = std::min(left_a, left_b);
    if (i % 2 == 1 && j % 2 == 1) shared += step;
    left_a -= step;
    left_b -= step;
    if (left_a == 0 && ++i < a.runs.size()) left_a = a.runs[i];
    if (left_b == 0 && ++j < b.runs.size()) left_b = b.runs[j];
  }
  return shared;
}

double mask_iou(const Geometry& geometry_a, const Mask& mask_a, const Geometry& geometry_b,
                const Mask& mask_b) {
  if (mask_a.area == 0 || mask_b.area == 0)
    return bin_iou(clamp_box(bounding_box(geometry_a)), clamp_box(bounding_box(geometry_b)));
  const int64_t intersection = intersection_area(mask_a, mask_b);
  return static_cast<double>(intersection) / (mask_a.area + mask_b.area - intersection);
}

}  // namespace rematch
