#include "tools/review/plain_numbers.h"

#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace rematch {
namespace {

bool add_number(const Json& value, std::vector<double>& numbers) {
  double number = 0;
  if (value.is_number()) {
    number = value.get<double>();
  } else if (value.is_string()) {
    const std::string text = python_strip(value.get_ref<const std::string&>());
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return false;
  } else {
    return false;
  }
  numbers.push_back(number);
  return std::isfinite(number);
}

}  // namespace

std::vector<double> read_plain_numbers(const Json& geometry) {
  std::vector<double> numbers;
  if (!geometry.is_array()) return numbers;
  for (const Json& item : geometry) {
    if (!item.is_array()) {
      if (!add_number(item, numbers)) return {};
      continue;
    }
    for (const Json& inner : item) {
      if (!add_number(inner, numbers)) return {};
    }
  }
  return numbers;
}

}  // namespace rematch
