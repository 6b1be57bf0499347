#include "program/config/values.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "program/config/convert.h"

namespace rematch {

struct Values::Entry {
  Json value;
  std::string origin;
  bool given = false;
};

namespace {

Json to_json(const KeyValue& value) {
  if (const auto* files = std::get_if<std::vector<TrainFile>>(&value)) {
    Json list = Json::array();
    for (const TrainFile& file : *files)
      list.push_back({{"path", file.path}, {"weight", file.weight}});
    return list;
  }
  if (const auto* list = std::get_if<std::vector<std::string>>(&value)) return *list;
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) return *real;
  if (const auto* whole = std::get_if<int64_t>(&value)) return *whole;
  if (const auto* flag = std::get_if<bool>(&value)) return *flag;
  return nullptr;
}

}  // namespace

Values::Values(Settings base) {
  Settings built_in;
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured) continue;
    Entry& entry = entries_[spec.path] = {default_value(spec), "default", false};
    if (spec.read && spec.read(base) != spec.read(built_in)) entry.value = to_json(spec.read(base));
  }
}
Values::Values(const Values&) = default;
Values::~Values() = default;

const Values::Entry& Values::entry(const std::string& path) const {
  const auto found = entries_.find(path);
  REMATCH_CHECK(found != entries_.end(), path);
  return found->second;
}

bool Values::is_given(const std::string& path) const { return entry(path).given; }
bool Values::is_null(const std::string& path) const { return entry(path).value.is_null(); }
const Json& Values::json(const std::string& path) const { return entry(path).value; }
const std::string& Values::origin(const std::string& path) const { return entry(path).origin; }
std::string Values::where(const std::string& path) const {
  return is_given(path) ? origin(path) : path;
}

bool Values::boolean(const std::string& path) const {
  REMATCH_CHECK(json(path).is_boolean(), path);
  return json(path).get<bool>();
}
int64_t Values::integer(const std::string& path) const {
  REMATCH_CHECK(json(path).is_number_integer(), path);
  return json(path).get<int64_t>();
}
double Values::number(const std::string& path) const {
  REMATCH_CHECK(json(path).is_number(), path);
  return json(path).get<double>();
}
std::string Values::text(const std::string& path) const {
  REMATCH_CHECK(json(path).is_string(), path);
  return json(path).get<std::string>();
}

void Values::set(const std::string& path, Json value, std::string origin, bool given) {
  entry(path);  // must exist
  entries_[path] = {std::move(value), std::move(origin), given};
}

void Values::derive(const std::string& path, Json value, const std::string& from) {
  set(path, std::move(value), "derived from " + from, false);
}

}  // namespace rematch
