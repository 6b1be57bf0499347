#include "config/schema.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "config/keys.h"

namespace rematch {
namespace {

std::string last_part(const std::string& path) { return path.substr(path.rfind('.') + 1); }

std::vector<KeySpec>& added_keys() {
  static std::vector<KeySpec> keys;
  return keys;
}

struct Index {
  std::unordered_map<std::string, const KeySpec*> keys;
  std::set<std::string> sections{""};
};

const Index& index() {
  static const Index built = [] {
    Index result;
    for (const KeySpec& spec : schema()) {
      REMATCH_CHECK(result.keys.emplace(spec.path, &spec).second, spec.path);
      for (size_t dot = spec.path.find('.'); dot != std::string::npos;
           dot = spec.path.find('.', dot + 1)) {
        result.sections.insert(spec.path.substr(0, dot));
      }
    }
    for (const std::string& section : result.sections)
      REMATCH_CHECK(!result.keys.count(section), section);
    return result;
  }();
  return built;
}

}  // namespace

std::vector<KeySpec> join_keys(std::vector<std::vector<KeySpec>> parts) {
  std::vector<KeySpec> keys;
  for (std::vector<KeySpec>& part : parts) {
    for (KeySpec& spec : part) keys.push_back(std::move(spec));
  }
  return keys;
}

const std::vector<KeySpec>& schema() {
  static const std::vector<KeySpec> table =
      join_keys({model_keys(), training_keys(), output_keys(), custom_keys(), rollout_keys(),
                 vllm_keys(), monitor_keys(), foreign_keys(), removed_keys(), added_keys()});
  return table;
}

void add_key(KeySpec spec) { added_keys().push_back(std::move(spec)); }

const KeySpec* find_key(const std::string& path) {
  const auto found = index().keys.find(path);
  return found == index().keys.end() ? nullptr : found->second;
}

bool is_section(const std::string& path) { return index().sections.count(path) > 0; }

std::vector<std::string> suggest_keys(const std::string& section, const std::string& name) {
  constexpr size_t kMost = 3;
  constexpr size_t kLongestName = 80;  // comparing two names costs the product of their lengths
  std::vector<std::string> found;
  if (name.size() > kLongestName) return found;
  const auto add = [&](const std::string& path) {
    if (found.size() < kMost && std::find(found.begin(), found.end(), path) == found.end())
      found.push_back(path);
  };
  std::vector<std::string> siblings;                  // names directly inside the section
  std::multimap<std::string, std::string> elsewhere;  // last part → path
  std::vector<std::string> parts;
  const std::string prefix = section.empty() ? "" : section + ".";
  std::vector<std::string> paths(index().sections.begin(), index().sections.end());
  for (const KeySpec& spec : schema()) {
    if (spec.state == KeyState::kHonoured || spec.state == KeyState::kIgnored)
      paths.push_back(spec.path);
  }
  for (const std::string& path : paths) {
    if (path.empty()) continue;
    const std::string last = last_part(path);
    if (path == prefix + last) siblings.push_back(last);
    elsewhere.emplace(last, path);
    parts.push_back(last);
  }
  for (auto [at, end] = elsewhere.equal_range(last_part(name)); at != end; ++at) add(at->second);
  if (!found.empty()) return found;  // the same name in another section
  for (const std::string& sibling : near_names(name, siblings)) add(prefix + sibling);
  std::sort(parts.begin(), parts.end());
  parts.erase(std::unique(parts.begin(), parts.end()), parts.end());
  for (const std::string& part : near_names(name, parts)) {
    for (auto [at, end] = elsewhere.equal_range(part); at != end; ++at) add(at->second);
  }
  return found;
}

}  // namespace rematch
