#include "base/json_fields.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

/// 2^53: doubles up to here hold every integer.
constexpr double kMaxExactInteger = 9007199254740992.0;

/// True if an int64 can hold the value.
bool is_integer(const Json& value) {
  if (value.is_number_unsigned())
    return value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
  if (!value.is_number_float()) return value.is_number_integer();
  const double number = value.get<double>();
  return std::floor(number) == number && std::abs(number) <= kMaxExactInteger;
}

/// The error of the origin, with the place filled in.
std::string error_at(const JsonOrigin& origin, const std::string& place) {
  std::string error = origin.error;
  if (const size_t mark = error.find("{}"); mark != std::string::npos)
    error.replace(mark, 2, place.empty() ? "the whole file" : place);
  return error;
}

}  // namespace

void throw_json_error(const JsonOrigin& origin, const std::string& place, const std::string& what) {
  std::string where = origin.path;
  if (!where.empty() && !place.empty()) where += ": ";
  throw data_error(
      {.error = error_at(origin, place), .where = where + place, .what = what, .fix = origin.fix});
}

Json parse_document(std::string_view text, const JsonOrigin& origin) {
  try {
    return parse_json(text, origin.path);
  } catch (const UserError& error) {
    const Problem& problem = error.problems()[0];
    throw data_error({.error = error_at(origin, ""),
                      .where = problem.where,
                      .what = problem.error + ": " + problem.what,
                      .fix = origin.fix});
  }
}

JsonFields::JsonFields(const Json& value, const JsonOrigin& origin, std::string place)
    : value_(&value), origin_(&origin), place_(std::move(place)) {
  if (!value.is_object())
    throw_json_error(origin, place_, fmt::format("expected an object, found {}", show_json(value)));
}

std::string JsonFields::place_of(const std::string& key) const {
  return place_.empty() ? key : place_ + "." + key;
}

void JsonFields::fail(const std::string& key, const std::string& what) const {
  throw_json_error(*origin_, place_of(key), what);
}

void JsonFields::fail_type(const std::string& key, const char* wanted, const Json& found) const {
  fail(key, fmt::format("expected {}, found {}", wanted, show_json(found)));
}

const Json* JsonFields::find(const std::string& key) {
  if (!contains(asked_, key)) asked_.push_back(key);
  const auto found = value_->find(key);
  return found == value_->end() || (origin_->null_is_absent && found->is_null()) ? nullptr
                                                                                 : &*found;
}

const Json& JsonFields::at(const std::string& key) {
  const Json* found = find(key);
  if (found == nullptr) fail(key, "it is missing");
  return *found;
}

int64_t JsonFields::integer(const std::string& key, int64_t least, int64_t most) {
  return json_integer(at(key), *origin_, place_of(key), least, most);
}

double JsonFields::number(const std::string& key) {
  const Json& value = at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>()))
    fail_type(key, "a finite number", value);
  return value.get<double>();
}

bool JsonFields::boolean(const std::string& key) {
  const Json& value = at(key);
  if (!value.is_boolean()) fail_type(key, "true or false", value);
  return value.get<bool>();
}

std::string JsonFields::text(const std::string& key) {
  const Json& value = at(key);
  if (!value.is_string()) fail_type(key, "a string", value);
  return value.get<std::string>();
}

const Json& JsonFields::list(const std::string& key, size_t most) {
  const Json& value = at(key);
  if (!value.is_array()) fail_type(key, "a list", value);
  if (value.size() > most)
    fail(key, fmt::format("expected at most {} entries, found {}", most, value.size()));
  return value;
}

std::vector<int> JsonFields::integers(const std::string& key) {
  const Json& value = at(key);
  if (!value.is_array()) fail_type(key, "a list of integers", value);
  std::vector<int> integers;
  integers.reserve(value.size());
  for (const Json& item : value) {
    if (!is_integer(item) || item.get<int64_t>() != static_cast<int>(item.get<int64_t>())) {
      fail(fmt::format("{}[{}]", key, integers.size()),
           fmt::format("expected {}, found {}",
                       is_integer(item) ? "integers of at most 32 bits" : "a list of integers",
                       show_json(item)));
    }
    integers.push_back(item.get<int>());
  }
  return integers;
}

Strings JsonFields::texts(const std::string& key) {
  const Json* value = find(key);
  Strings texts;
  if (value == nullptr || value->is_null()) return texts;
  if (!value->is_array()) fail_type(key, "a list of strings", *value);
  for (const Json& item : *value) {
    if (!item.is_string()) fail_type(key, "a list of strings", *value);
    texts.push_back(item.get<std::string>());
  }
  return texts;
}

JsonFields JsonFields::object(const std::string& key) {
  return JsonFields(at(key), *origin_, place_of(key));
}

JsonFields JsonFields::object_or_empty(const std::string& key) {
  static const Json kEmpty = Json::object();
  const Json* value = find(key);
  return JsonFields(value == nullptr || value->is_null() ? kEmpty : *value, *origin_,
                    place_of(key));
}

void JsonFields::finish() const {
  for (const auto& item : value_->items()) {
    if (contains(asked_, item.key())) continue;
    const Strings near = near_names(item.key(), asked_);
    throw UserError(
        origin_->unknown_key,
        {.error = fmt::format("unknown field {}", python_json_string(item.key())),
         .where = origin_->path.empty() || place_.empty() ? origin_->path + place_
                                                          : origin_->path + ": " + place_,
         .what = fmt::format("known: {}", join(asked_, ", ")),
         .fix = near.empty() ? "remove it" : fmt::format("did you mean \"{}\"?", near.front())});
  }
}

int64_t json_integer(const Json& value, const JsonOrigin& origin, const std::string& place,
                     int64_t least, int64_t most) {
  if (is_integer(value) && value.get<int64_t>() >= least && value.get<int64_t>() <= most)
    return value.get<int64_t>();
  const bool is_bounded =
      least != std::numeric_limits<int64_t>::min() || most != std::numeric_limits<int64_t>::max();
  const std::string range = is_bounded ? fmt::format(" from {} to {}", least, most) : "";
  throw_json_error(origin, place,
                   fmt::format("expected an integer{}, found {}", range, show_json(value)));
}

}  // namespace rematch
