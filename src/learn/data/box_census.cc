#include "learn/data/box_census.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kMaxNamed = 10;
// A false alarm in one of ten thousand correct data sets with evenly spread boxes.
constexpr double kMinChance = 1e-4;

// Largest coordinate of one axis. @param axis  0 = x, 1 = y
int largest_coordinate(const Geometry& geometry, size_t axis) {
  int result = 0;
  for (size_t i = axis; i < geometry.bins.size(); i += 2)
    result = std::max(result, geometry.bins[i]);
  return result;
}

// True if all vertices are on one line.
bool is_collinear(const std::vector<int>& bins) {
  const int64_t x0 = bins[0], y0 = bins[1];
  int64_t along_x = 0, along_y = 0;
  for (size_t i = 2; i + 1 < bins.size(); i += 2) {
    const int64_t dx = bins[i] - x0, dy = bins[i + 1] - y0;
    if (along_x == 0 && along_y == 0) {
      along_x = dx;
      along_y = dy;
    }
    if (along_x * dy != along_y * dx) return false;
  }
  return true;
}

bool is_flat(const Geometry& geometry) {
  if (geometry.kind == GeometryKind::kPoly) return is_collinear(geometry.bins);
  return geometry.bins[0] == geometry.bins[2] || geometry.bins[1] == geometry.bins[3];
}

}  // namespace

void BoxCensus::add(const Sample& sample) {
  find_flat_shapes(sample);
  find_pixels(sample);
}

void BoxCensus::find_flat_shapes(const Sample& sample) {
  for (size_t i = 0; i < sample.objects.size(); ++i) {
    const Geometry& geometry = sample.objects[i].geometry;
    if (!is_flat(geometry)) continue;
    ++(geometry.kind == GeometryKind::kPoly ? num_flat_polys_ : num_flat_boxes_);
    if (flat_.size() < kMaxNamed)
      flat_.push_back(fmt::format("line {} object {}", sample.sample_id + 1, i + 1));
  }
}

void BoxCensus::find_pixels(const Sample& sample) {
  if (sample.objects.empty()) return;
  ++num_scenes_;
  int extent[] = {0, 0};
  for (size_t axis = 0; axis < 2; ++axis) {
    for (const SceneObject& object : sample.objects)
      extent[axis] = std::max(extent[axis], largest_coordinate(object.geometry, axis));
  }
  chance_.add(extent[0], extent[1], sample.width_px, sample.height_px);
  if (example_.empty()) {
    example_ =
        fmt::format("line {}: largest x {} and y {} in an image of {} x {} px",
                    sample.sample_id + 1, extent[0], extent[1], sample.width_px, sample.height_px);
  }
}

void PixelChance::add(double right, double bottom, int width_px, int height_px) {
  some_leave_ = some_leave_ || right > width_px || bottom > height_px;
  for (const int side : {width_px, height_px})
    log_chance_ += std::log(std::min(1.0, static_cast<double>(side) / kNumBins));
}

bool PixelChance::is_small() const { return !some_leave_ && log_chance_ < std::log(kMinChance); }

std::vector<std::string> BoxCensus::warnings(const std::string& path) const {
  std::vector<std::string> texts;
  if (const int64_t num_flat = num_flat_boxes_ + num_flat_polys_; num_flat > 0) {
    const bool all_named = num_flat == static_cast<int64_t>(flat_.size());
    texts.push_back(fmt::format(
        "{}: {} without width or height and {} without area ({}{}); correct only for thin objects",
        path, counted(num_flat_boxes_, "box", "boxes"), counted(num_flat_polys_, "polygon"),
        join(flat_, ", "), all_named ? "" : ", …"));
  }
  if (looks_like_pixels()) {
    texts.push_back(
        fmt::format("{}: COORDINATES LOOK LIKE PIXELS: in {} scenes no coordinate exceeds its "
                    "image's side ({}), but they are read as bins 0..{}; if they are pixels, "
                    "`rematch data check {} --fix OUT --unit pixels` converts them: bin = min(999, "
                    "round(1000 * x / width))",
                    path, num_scenes_, example_, kNumBins - 1, shell_word(path)));
  }
  return texts;
}

}  // namespace rematch
