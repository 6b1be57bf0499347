#include "tools/import/values.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace rematch {

const Json& member(const Json& value, std::initializer_list<const char*> keys) {
  static const Json kNone;
  for (const char* key : keys) {
    const auto found = value.is_object() ? value.find(key) : value.end();
    if (found != value.end() && !found->is_null()) return *found;
  }
  return kNone;
}

std::string text_member(const Json& value, std::initializer_list<const char*> keys) {
  const Json& text = member(value, keys);
  return text.is_string() ? text.get<std::string>() : "";
}

std::optional<std::string> read_id(const Json& value) {
  if (value.is_string() && value != "") return value.get<std::string>();
  if (value.is_number() && value == std::floor(value.get<double>()))
    return value.is_number_integer() ? value.dump() : fmt::format("{:.0f}", value.get<double>());
  return std::nullopt;
}

std::string image_path_of(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return member(value, {"bytes"}).is_null() ? text_member(value, {"path", "url", "file_name"})
                                            : "data:image/";
}

std::array<double, 4> extent_of(const Outline& points) {
  const auto& [x, y] = points[0];
  std::array<double, 4> box = {x, y, x, y};
  for (const std::array<double, 2>& point : points) {
    for (const size_t axis : {size_t{0}, size_t{1}}) {
      box[axis] = std::min(box[axis], point[axis]);
      box[axis + 2] = std::max(box[axis + 2], point[axis]);
    }
  }
  return box;
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

Outline read_written_points(std::string_view text) {
  constexpr std::string_view kDigits = "+-.0123456789eE";
  std::vector<double> numbers;
  for (size_t at = text.find_first_of(kDigits.substr(0, 13)); at != text.npos;) {
    const size_t end = std::min(text.find_first_not_of(kDigits, at), text.size());
    const std::optional<double> number = parse_number(text.substr(at, end - at));
    if (!number) return {};
    numbers.push_back(*number);
    at = text.find_first_of(kDigits.substr(0, 13), end);
  }
  return pair_up(numbers);
}

}  // namespace rematch
