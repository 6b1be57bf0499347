#include "base/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kLongestShown = 80;

/// A value as errors show it: cut, and never broken UTF-8.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() <= kLongestShown) return text;
  text.resize(kLongestShown);
  text += "…";
  return text;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

}  // namespace

void throw_json_error(const JsonOrigin& origin, const std::string& key, const std::string& what) {
  throw UserError(ErrorKind::kData, {.error = origin.error,
                                     .where = key.empty() ? origin.path : fmt::format("{}: {}", origin.path, key),
                                     .what = what,
                                     .fix = origin.fix});
}

Json parse_document(std::string_view text, const JsonOrigin& origin) {
  try {
    return parse_json(text, origin.path);
  } catch (const UserError& error) {
    const Problem& problem = error.problems()[0];
    throw UserError(ErrorKind::kData,
                    {.error = origin.error, .where = problem.where, .what = problem.error + ": " + problem.what, .fix = origin.fix});
  }
}

JsonFields::JsonFields(const Json& value, const JsonOrigin& origin, std::string place)
    : value_(&value), origin_(&origin), place_(std::move(place)) {
  if (!value.is_object()) throw_json_error(origin, place_, fmt::format("an object is expected, found {}", shown(value)));
}

std::string JsonFields::place_of(const std::string& key) const { return place_.empty() ? key : place_ + "." + key; }

void JsonFields::fail(const std::string& key, const std::string& what) const { throw_json_error(*origin_, place_of(key), what); }

bool JsonFields::has(const std::string& key) const { return value_->contains(key); }

const Json& JsonFields::at(const std::string& key) {
  const auto found = value_->find(key);
  if (found == value_->end()) fail(key, "it is missing");
  asked_.push_back(key);
  return *found;
}

int64_t JsonFields::integer(const std::string& key, int64_t least, int64_t most) {
  const Json& value = at(key);
  return json_integer(value, *origin_, place_of(key), least, most);
}

bool JsonFields::boolean(const std::string& key) {
  const Json& value = at(key);
  if (!value.is_boolean()) fail(key, fmt::format("true or false is expected, found {}", shown(value)));
  return value.get<bool>();
}

std::string JsonFields::text(const std::string& key) {
  const Json& value = at(key);
  if (!value.is_string()) fail(key, fmt::format("text is expected, found {}", shown(value)));
  return value.get<std::string>();
}

const Json& JsonFields::list(const std::string& key, size_t most) {
  const Json& value = at(key);
  if (!value.is_array()) fail(key, fmt::format("a list is expected, found {}", shown(value)));
  if (value.size() > most) fail(key, fmt::format("at most {} entries are expected, found {}", most, value.size()));
  return value;
}

JsonFields JsonFields::object(const std::string& key) {
  const Json& value = at(key);
  return JsonFields(value, *origin_, place_of(key));
}

void JsonFields::finish() const {
  for (const auto& item : value_->items()) {
    if (std::find(asked_.begin(), asked_.end(), item.key()) == asked_.end()) fail(item.key(), "this key does not belong there");
  }
}

int64_t json_integer(const Json& value, const JsonOrigin& origin, const std::string& place, int64_t least, int64_t most) {
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  if (fits && value.get<int64_t>() >= least && value.get<int64_t>() <= most) return value.get<int64_t>();
  throw_json_error(origin, place, fmt::format("a whole number in {}..{} is expected, found {}", least, most, shown(value)));
}

Json bytes_json(const std::string& bytes) {
  if (is_valid_utf8(bytes)) return bytes;
  std::string hex;
  for (const char byte : bytes) hex += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  return {{"hex", hex}};
}

std::string bytes_of(const Json& value, const JsonOrigin& origin, const std::string& place) {
  if (value.is_string()) return value.get<std::string>();
  JsonFields fields(value, origin, place);
  const std::string hex = fields.text("hex");
  fields.finish();
  std::string bytes;
  for (size_t i = 0; i + 1 < hex.size(); i += 2) {
    const int high = hex_digit(hex[i]), low = hex_digit(hex[i + 1]);
    if (high < 0 || low < 0) fields.fail("hex", "no hexadecimal digits");
    bytes += static_cast<char>(high * 16 + low);
  }
  if (hex.size() % 2 != 0) fields.fail("hex", fmt::format("{} digits", hex.size()));
  return bytes;
}

}  // namespace rematch
