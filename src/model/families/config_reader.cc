#include "model/families/config_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace rematch {

void bad_config_value(const std::string& where, const std::string& key, const std::string& what, const std::string& fix) {
  throw UserError(ErrorKind::kData,
                  {.error = fmt::format("{} in config.json is not usable", key), .where = where, .what = what, .fix = fix});
}

ConfigReader::ConfigReader(const Json& value, std::string where, std::string prefix)
    : value_(&value), where_(std::move(where)), prefix_(std::move(prefix)) {
  if (!value.is_object()) bad_config_value(where_, prefix_.empty() ? "the document" : prefix_, value.type_name(), "give a JSON object");
}

void ConfigReader::fail(const std::string& key, const std::string& what, const std::string& fix) const {
  bad_config_value(where_, name(key), what, fix);
}

const Json* ConfigReader::find(const std::string& key) const {
  const auto found = value_->find(key);
  return found == value_->end() || found->is_null() ? nullptr : &*found;
}

bool ConfigReader::is_null(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && found->is_null();
}

int64_t ConfigReader::integer(const std::string& key, int64_t fallback, int64_t least) const {
  const Json* member = find(key);
  return member == nullptr ? fallback : to_integer(key, *member, least);
}

int64_t ConfigReader::side(const std::string& key, int64_t fallback) const {
  const Json* member = find(key);
  if (member == nullptr || !member->is_array()) return integer(key, fallback);
  const bool is_square =
      !member->empty() && std::all_of(member->begin(), member->end(), [&](const Json& item) { return item == member->front(); });
  if (!is_square) fail(key, member->dump(), "give one integer");
  return to_integer(key, member->front(), 1);
}

double ConfigReader::number(const std::string& key, double fallback) const {
  const Json* member = find(key);
  if (member == nullptr) return fallback;
  if (!member->is_number() || !std::isfinite(member->get<double>()) || member->get<double>() <= 0) {
    fail(key, member->dump(), "give a number above 0");
  }
  return member->get<double>();
}

bool ConfigReader::boolean(const std::string& key, bool fallback) const {
  const Json* member = find(key);
  if (member == nullptr) return fallback;
  if (!member->is_boolean()) fail(key, member->dump(), "give true or false");
  return member->get<bool>();
}

std::string ConfigReader::text(const std::string& key, const std::string& fallback) const {
  const Json* member = find(key);
  if (member == nullptr) return fallback;
  if (!member->is_string()) fail(key, member->dump(), "give text");
  return member->get<std::string>();
}

std::vector<std::string> ConfigReader::texts(const std::string& key) const {
  std::vector<std::string> texts;
  const Json* member = find(key);
  if (member == nullptr || !member->is_array()) return texts;
  for (const Json& item : *member) {
    if (item.is_string()) texts.push_back(item.get<std::string>());
  }
  return texts;
}

std::vector<int64_t> ConfigReader::integers(const std::string& key, std::vector<int64_t> fallback) const {
  const Json* member = find(key);
  if (member == nullptr) return fallback;
  if (!member->is_array()) fail(key, member->dump(), "give a list of integers");
  std::vector<int64_t> values;
  for (const Json& item : *member) values.push_back(to_integer(key, item, 0));
  return values;
}

ConfigReader ConfigReader::object(const std::string& key) const {
  static const Json kEmpty = Json::object();
  const Json* member = find(key);
  return {member == nullptr ? kEmpty : *member, where_, name(key)};
}

void ConfigReader::require_text(const std::string& key, const std::string& wanted) const {
  const std::string found = text(key, wanted);
  if (found != wanted) fail(key, fmt::format("\"{}\"", found), fmt::format("only \"{}\" is implemented", wanted));
}

int64_t ConfigReader::to_integer(const std::string& key, const Json& value, int64_t least) const {
  const bool is_legal = value.is_number_integer() && (!value.is_number_unsigned() || value.get<uint64_t>() <= 0x7fffffffu) &&
                        value.get<int64_t>() >= least && value.get<int64_t>() <= std::numeric_limits<int32_t>::max();
  if (!is_legal) fail(key, value.dump(), fmt::format("give an integer from {} to {}", least, std::numeric_limits<int32_t>::max()));
  return value.get<int64_t>();
}

}  // namespace rematch
