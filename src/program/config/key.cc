#include "program/config/key.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"

namespace rematch {
namespace {

constexpr double kLargest = std::numeric_limits<int>::max();

/// Shortest digits that read back the same, 1e-8 rather than 1e-08.
std::string number_text(double value) {
  std::string text = fmt::format("{}", value);
  const size_t exponent = text.find("e-0");
  return exponent == std::string::npos ? text : text.erase(exponent + 2, 1);
}

}  // namespace

const TypeWords& words_of(KeyType type) {
  static constexpr TypeWords kWords[] = {{"text", "text"},
                                         {"integer", "an integer"},
                                         {"number", "a number"},
                                         {"bool", "true or false"},
                                         {"choice", "one of "},
                                         {"list", "a list of strings"},
                                         {"files", "a path or a list of files"},
                                         {"any", "anything"}};
  return kWords[static_cast<size_t>(type)];
}

std::string yaml_text(const KeyValue& value) {
  if (const auto* flag = std::get_if<bool>(&value)) return *flag ? "true" : "false";
  if (const auto* whole = std::get_if<int64_t>(&value)) return fmt::format("{}", *whole);
  if (const auto* real = std::get_if<double>(&value)) return number_text(*real);
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* list = std::get_if<Strings>(&value)) return "[" + join(*list, ", ") + "]";
  return "";
}

Json to_json(const KeyValue& value) {
  if (const auto* files = std::get_if<std::vector<TrainFile>>(&value)) {
    Json list = Json::array();
    for (const TrainFile& file : *files) {
      list.push_back(file.weight == 1 ? Json(file.path)
                                      : Json{{"path", file.path}, {"weight", file.weight}});
    }
    return list.size() == 1 && list.front().is_string() ? list.front() : list;
  }
  return std::visit(
      [](const auto& plain) {
        if constexpr (std::is_constructible_v<Json, decltype(plain)>) return Json(plain);
        return Json();
      },
      value);
}

std::string KeySpec::default_text() const {
  if (required) return "required";
  if (!is_null(fallback)) return yaml_text(fallback);
  return null_words.empty() ? "null" : null_words.front();
}

std::string KeySpec::range_text() const {
  const bool has_low = low > -kLargest;  // default bounds are not shown
  const bool has_high = high < kLargest;
  if (has_low && has_high)
    return fmt::format("in {}{}, {}{}", low_open ? "(" : "[", low, high, high_open ? ")" : "]");
  if (has_low) return fmt::format("{} {}", low_open ? ">" : ">=", low);
  return has_high ? fmt::format("{} {}", high_open ? "<" : "<=", high) : "";
}

bool KeySpec::in_range(double value) const {
  return (low_open ? value > low : value >= low) && (high_open ? value < high : value <= high);
}

KeySpec plain_key(std::string path, KeyType type, KeyValue fallback) {
  KeySpec spec;
  spec.path = std::move(path);
  spec.type = type;
  spec.fallback = std::move(fallback);
  if (type == KeyType::kInteger || type == KeyType::kNumber) {
    spec.low = -kLargest;
    spec.high = kLargest;
  }
  return spec;
}

}  // namespace rematch
