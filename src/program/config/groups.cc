#include "program/config/groups.h"

#include <algorithm>
#include <map>

#include "program/config/schema.h"

namespace rematch {

std::string key_group(const std::string& path) {
  if (path.starts_with(kRolloutMatching + ".")) return kRolloutMatching;
  const size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string name_in_group(const std::string& path) {
  const std::string group = key_group(path);
  return group.empty() ? path : path.substr(group.size() + 1);
}

std::vector<const EffectiveValue*> sort_by_group(std::vector<const EffectiveValue*> rows) {
  std::map<std::string, size_t> place;
  for (const EffectiveValue* row : rows) place.emplace(key_group(row->key), place.size());
  std::stable_sort(rows.begin(), rows.end(), [&](const auto* a, const auto* b) {
    return place[key_group(a->key)] < place[key_group(b->key)];
  });
  return rows;
}

}  // namespace rematch
