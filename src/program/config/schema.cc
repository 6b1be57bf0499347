#include "program/config/schema.h"

#include <algorithm>
#include <utility>

#include "program/config/keys.h"

namespace rematch {
namespace {

std::vector<KeySpec>& added_keys() {
  static std::vector<KeySpec> keys;
  return keys;
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
                 vllm_keys(), monitor_keys(), origin_keys(), added_keys()});
  return table;
}

void add_key(KeySpec spec) { added_keys().push_back(std::move(spec)); }

const KeySpec* find_key(const std::string& path) {
  const auto found = std::ranges::find(schema(), path, &KeySpec::path);
  return found == schema().end() ? nullptr : &*found;
}

const std::set<std::string>& sections() {
  static const std::set<std::string> all = [] {
    std::set<std::string> result{""};
    for (const KeySpec& spec : schema()) {
      for (size_t dot = spec.path.find('.'); dot != std::string::npos;
           dot = spec.path.find('.', dot + 1))
        result.insert(spec.path.substr(0, dot));
    }
    return result;
  }();
  return all;
}

bool is_section(const std::string& path) { return sections().contains(path); }

std::string key_group(const std::string& path) {
  if (path.starts_with(kRolloutMatching + ".")) return kRolloutMatching;
  const size_t dot = path.find('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

std::string name_in_group(const std::string& path) {
  const std::string group = key_group(path);
  return group.empty() ? path : path.substr(group.size() + 1);
}

}  // namespace rematch
