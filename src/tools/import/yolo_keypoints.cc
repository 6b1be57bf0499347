#include <algorithm>
#include <cmath>

#include <fmt/core.h>

#include "tools/import/geometry.h"
#include "tools/import/yolo_labels.h"

namespace rematch {
namespace {

constexpr size_t kBox = 4, kTwoPoints = 8;
constexpr double kMargin = 0.25;  // of the points' extent

/// True if every third number after the box is a flag of visibility.
bool have_flags(const std::vector<double>& values) {
  for (size_t i = kBox + 2; i < values.size(); i += 3) {
    if (values[i] != 0 && values[i] != 1 && values[i] != 2) return false;
  }
  return values.size() > kBox && (values.size() - kBox) % 3 == 0;
}

/// True if four corners are far from the parallelogram of a turned box.
bool is_not_turned_box(const std::vector<double>& values) {
  const ForeignObject extent = box_around(pair_up(values));
  const double gap = std::hypot(values[0] + values[4] - values[2] - values[6],
                                values[1] + values[5] - values[3] - values[7]);
  return 2 * gap > std::hypot(extent.x1 - extent.x0, extent.y1 - extent.y0);
}

/// True if the second corner of an outline is far from the others: it is a width and height.
bool is_not_outline(const std::vector<double>& values, Outline others) {
  others.push_back({values[0], values[1]});
  const ForeignObject extent = box_around(others);
  const double margin_x = kMargin * (extent.x1 - extent.x0),
               margin_y = kMargin * (extent.y1 - extent.y0);
  return values[2] < extent.x0 - margin_x || values[2] > extent.x1 + margin_x ||
         values[3] < extent.y0 - margin_y || values[3] > extent.y1 + margin_y;
}

}  // namespace

void KeypointEvidence::add(const std::vector<double>& values, const std::string& line) {
  const bool flags = have_flags(values);
  if (!flags && (values.size() < kTwoPoints || values.size() % 2 != 0)) return;
  const size_t step = flags ? 3 : 2;
  if (num_lines++ == 0) {
    first = line;
    shape = fmt::format("[{}, {}]", (values.size() - kBox) / step, step);
  }
  Outline points;  // those at the origin are not set
  for (size_t i = kBox; i + 1 < values.size(); i += step) {
    if (values[i] != 0 || values[i + 1] != 0) points.push_back({values[i], values[i + 1]});
  }
  const bool is_in_box = std::all_of(points.begin(), points.end(), [&](const auto& point) {
    return 2 * std::abs(point[0] - values[0]) <= values[2] &&
           2 * std::abs(point[1] - values[1]) <= values[3];
  });
  if (points.empty() || !is_in_box) return;
  ++num_in_box;
  num_not_ring += flags || (values.size() == kTwoPoints ? is_not_turned_box(values)
                                                        : is_not_outline(values, points));
}

bool KeypointEvidence::is_proof() const {
  return num_lines > 0 && 5 * num_in_box >= 4 * num_lines && 10 * num_not_ring >= 3 * num_lines;
}

}  // namespace rematch
