#include "tools/import/json_value.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/utf16.h"

namespace rematch {

const Json* find_member(const Json& value, const char* key) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(key);
  return found == value.end() || found->is_null() ? nullptr : &*found;
}

const Json* find_member(const Json& value, std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    if (const Json* member = find_member(value, key)) return member;
  }
  return nullptr;
}

std::optional<std::string> read_id(const Json* value) {
  if (value == nullptr) return std::nullopt;
  if (value->is_string()) return value->get<std::string>();
  if (value->is_number_integer()) return value->dump();
  if (value->is_number_float() && *value == std::floor(value->get<double>()))
    return fmt::format("{:.0f}", value->get<double>());
  return std::nullopt;
}

int read_side_px(const Json* value) {
  if (value == nullptr || !value->is_number()) return 0;
  const double side = value->get<double>();
  const bool is_side = side >= 1 && side <= std::numeric_limits<int>::max();
  return is_side ? static_cast<int>(std::lround(side)) : 0;
}

namespace {

/// Reads a text that is one object over several lines.
/// @return false if it is none
bool read_whole(const std::string& path, std::string_view text,
                const std::function<void(const Json&, const std::string& where)>& good) {
  std::optional<Json> record;
  try {
    record = parse_json(text, path);
  } catch (const UserError&) {
    return false;
  }
  good(*record, path);
  return true;
}

}  // namespace

void read_json_records(
    const std::string& path, std::string_view bytes,
    const std::function<void(const Json&, const std::string& where)>& good,
    const std::function<void(const std::string& where, const std::string&)>& bad) {
  refuse_utf16(bytes, path);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.remove_prefix(3);
  const size_t first = bytes.find_first_not_of(" \t\r\n");
  if (first != bytes.npos && bytes[first] == '[') {
    const Json list = parse_json(bytes, path);
    for (size_t i = 0; i < list.size(); ++i)
      good(list[i], fmt::format("{}, record {}", path, i + 1));
    return;
  }
  const std::string_view whole = bytes;
  bool is_first = true;
  int64_t number = 0;
  while (!bytes.empty()) {
    throw_if_interrupted();
    const size_t end = std::min(bytes.find('\n'), bytes.size());
    const std::string_view line = bytes.substr(0, end);
    bytes.remove_prefix(std::min(end + 1, bytes.size()));
    ++number;
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    std::optional<Json> record;
    try {
      record = parse_json(line, where);
    } catch (const UserError& error) {
      if (is_first && read_whole(path, whole, good)) return;
      is_first = false;
      bad(where, error.problems().front().what);
      continue;
    }
    is_first = false;
    good(*record, where);
  }
}

}  // namespace rematch
