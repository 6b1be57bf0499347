#include "ranks/bag_bytes.h"

#include <nlohmann/json.hpp>

#include "base/json.h"

namespace rematch {

std::string bytes_of(const MetricsBag& bag) {
  Json names = Json::object();
  for (const auto& [name, values] : bag.all()) names[name] = values;
  const std::vector<uint8_t> bytes = Json::to_msgpack(names);
  return {bytes.begin(), bytes.end()};
}

MetricsBag bag_of(std::string_view bytes) {
  MetricsBag bag;
  const Json names = Json::from_msgpack(bytes);
  for (const auto& item : names.items()) {
    for (const Json& value : item.value()) bag.add(item.key(), value.get<double>());
  }
  return bag;
}

}  // namespace rematch
