#include "model/families/config_reader.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace rematch {
namespace {

constexpr int64_t kMostInteger = std::numeric_limits<int32_t>::max();

}  // namespace

void bad_config_value(const std::string& where, const std::string& key, const std::string& what, const std::string& fix) {
  throw UserError(ErrorKind::kData,
                  {.error = fmt::format("{} in config.json is not usable", key), .where = where, .what = what, .fix = fix});
}

ConfigReader::ConfigReader(const Json& value, std::string where, std::string prefix)
    : value_(&value),
      origin_{.path = std::move(where),
              .error = "{} in config.json is not usable",
              .fix = "correct it, or copy config.json of the original checkpoint",
              .null_is_absent = true},
      prefix_(std::move(prefix)) {
  fields();  // throws unless it is an object
}

void ConfigReader::fail(const std::string& key, const std::string& what, const std::string& fix) const {
  bad_config_value(origin_.path, name(key), what, fix);
}

const Json* ConfigReader::find(const std::string& key) const { return fields().find(key); }

bool ConfigReader::is_null(const std::string& key) const {
  const auto found = value_->find(key);
  return found != value_->end() && found->is_null();
}

int64_t ConfigReader::integer(const std::string& key, int64_t fallback, int64_t least) const {
  return fields().integer_or(key, fallback, least, kMostInteger);
}

int64_t ConfigReader::side(const std::string& key, int64_t fallback) const {
  const Json* member = find(key);
  if (member == nullptr || !member->is_array()) return integer(key, fallback);
  const bool is_square =
      !member->empty() && std::all_of(member->begin(), member->end(), [&](const Json& item) { return item == member->front(); });
  if (!is_square) fail(key, shown_json(*member), "give one integer");
  return json_integer(member->front(), origin_, name(key), 1, kMostInteger);
}

double ConfigReader::number(const std::string& key, double fallback) const {
  const double number = fields().number_or(key, fallback);
  if (number <= 0) fail(key, fmt::format("{}", number), "give a number above 0");
  return number;
}

bool ConfigReader::boolean(const std::string& key, bool fallback) const { return fields().boolean_or(key, fallback); }

std::string ConfigReader::text(const std::string& key, const std::string& fallback) const { return fields().text_or(key, fallback); }

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
  if (find(key) == nullptr) return fallback;
  std::vector<int64_t> values;
  for (const Json& item : fields().list(key)) values.push_back(json_integer(item, origin_, name(key), 0, kMostInteger));
  return values;
}

ConfigReader ConfigReader::object(const std::string& key) const {
  static const Json kEmpty = Json::object();
  const Json* member = find(key);
  return {member == nullptr ? kEmpty : *member, origin_.path, name(key)};
}

void ConfigReader::require_text(const std::string& key, const std::string& wanted) const {
  const std::string found = text(key, wanted);
  if (found != wanted) fail(key, fmt::format("\"{}\"", found), fmt::format("only \"{}\" is implemented", wanted));
}

}  // namespace rematch
