#include "tools/import/geometry.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tools/import/reasons.h"

namespace rematch {
ForeignObject box_around(const Outline& points) {
  ForeignObject object{
      .x0 = points[0][0], .y0 = points[0][1], .x1 = points[0][0], .y1 = points[0][1]};
  for (const auto& [x, y] : points) {
    object.x0 = std::min(object.x0, x);
    object.y0 = std::min(object.y0, y);
    object.x1 = std::max(object.x1, x);
    object.y1 = std::max(object.y1, y);
  }
  return object;
}

ForeignObject make_box(const std::array<double, 4>& numbers, BoxForm form) {
  const auto [x0, y0, x1, y1] = to_corners(numbers, form);
  return {.x0 = x0, .y0 = y0, .x1 = x1, .y1 = y1};
}

ForeignObject make_outline(const Outline& points, bool keep_ring, Ledger& ledger) {
  ForeignObject object = box_around(points);
  if (keep_ring)
    object.ring = points;
  else
    ledger.note("outlines replaced by their boxes (--polygons keeps outlines)");
  return object;
}

const char* make_shape(const Outline& points, const ImportOptions& options, ForeignObject& object,
                       Ledger& ledger) {
  if (points.size() == 1) return reason::kPoint;
  if (points.size() < 2 || points.size() == 3) return reason::kNoBox;
  object = points.size() == 2 ? make_box({points[0][0], points[0][1], points[1][0], points[1][1]},
                                         options.boxes.value_or(BoxForm::kCorners))
                              : make_outline(points, options.polygons, ledger);
  return nullptr;
}

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with("+")) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

std::optional<double> read_number(const Json& value) {
  if (value.is_number()) {
    const double number = value.get<double>();
    return std::isfinite(number) ? std::optional<double>(number) : std::nullopt;
  }
  if (value.is_string()) return parse_number(python_strip(value.get_ref<const std::string&>()));
  return std::nullopt;
}

Outline pair_up(const std::vector<double>& values) {
  Outline points;
  if (values.size() % 2 != 0) return points;
  for (size_t i = 0; i < values.size(); i += 2) points.push_back({values[i], values[i + 1]});
  return points;
}

Outline read_points(const Json& value) {
  if (!value.is_array() || value.empty()) return {};
  std::vector<double> numbers;
  const bool is_nested = value.front().is_array();
  const auto add = [&numbers](const Json& each) {
    const std::optional<double> number = read_number(each);
    if (number) numbers.push_back(*number);
    return number.has_value();
  };
  for (const Json& each : value) {
    const bool is_read =
        is_nested ? each.is_array() && each.size() == 2 && add(each[0]) && add(each[1]) : add(each);
    if (!is_read) return {};
  }
  return pair_up(numbers);
}

std::optional<std::array<double, 4>> read_four(const Json& value) {
  const Outline points = read_points(value);
  if (points.size() != 2) return std::nullopt;
  return std::array<double, 4>{points[0][0], points[0][1], points[1][0], points[1][1]};
}

}  // namespace rematch
