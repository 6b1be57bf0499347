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

Values::Values() {
  for (const KeySpec& spec : schema()) {
    if (spec.state == KeyState::kHonoured)
      entries_[spec.path] = {default_value(spec), "default", false};
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
