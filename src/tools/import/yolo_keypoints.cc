#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "tools/import/geometry.h"
#include "tools/import/yolo_labels.h"

namespace rematch {
namespace {

constexpr size_t kBox = 4, kFewestValues = 10;  // three points
constexpr double kMargin = 0.25;                // of the points' extent

/// True if every third number after the box is a flag of visibility.
bool have_flags(const std::vector<double>& values) {
  if ((values.size() - kBox) % 3 != 0) return false;
  for (size_t i = kBox + 2; i < values.size(); i += 3) {
    if (values[i] != 0 && values[i] != 1 && values[i] != 2) return false;
  }
  return true;
}

/// The points that are set; those at the origin are not.
Outline set_points(const std::vector<double>& values, size_t step) {
  Outline points;
  for (size_t i = kBox; i + 1 < values.size(); i += step) {
    if (values[i] != 0 || values[i + 1] != 0) points.push_back({values[i], values[i + 1]});
  }
  return points;
}

}  // namespace

void KeypointEvidence::add(const std::vector<double>& values, const std::string& line) {
  const bool flags = values.size() >= kFewestValues && have_flags(values);
  if (values.size() < kFewestValues || (!flags && values.size() % 2 != 0)) return;
  if (num_lines++ == 0) {
    num_values = values.size();
    has_flags = flags;
    first = line;
  }
  is_uniform = is_uniform && values.size() == num_values && flags == has_flags;
  const Outline points = set_points(values, flags ? 3 : 2);
  const double x = values[0], y = values[1], width = values[2], height = values[3];
  const bool is_in_box = std::all_of(points.begin(), points.end(), [&](const auto& point) {
    return 2 * std::abs(point[0] - x) <= width && 2 * std::abs(point[1] - y) <= height;
  });
  if (points.empty() || !is_in_box) return;
  ++num_in_box;
  Outline others = points;
  others.push_back({x, y});
  const ForeignObject extent = box_around(others);
  const double margin_x = kMargin * (extent.x1 - extent.x0),
               margin_y = kMargin * (extent.y1 - extent.y0);
  num_no_ring += flags || width < extent.x0 - margin_x || width > extent.x1 + margin_x ||
                 height < extent.y0 - margin_y || height > extent.y1 + margin_y;
}

bool KeypointEvidence::is_proof() const {
  return num_lines > 0 && is_uniform && 5 * num_in_box >= 4 * num_lines &&
         10 * num_no_ring >= 3 * num_lines;
}

std::string KeypointEvidence::shape() const {
  const size_t step = has_flags ? 3 : 2;
  return fmt::format("[{}, {}]", (num_values - kBox) / step, step);
}

}  // namespace rematch
