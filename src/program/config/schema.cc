#include "program/config/schema.h"

#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "program/config/keys.h"

namespace rematch {
namespace {

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
                 vllm_keys(), monitor_keys(), origin_keys(), added_keys()});
  return table;
}

void add_key(KeySpec spec) { added_keys().push_back(std::move(spec)); }

const KeySpec* find_key(const std::string& path) {
  const auto found = index().keys.find(path);
  return found == index().keys.end() ? nullptr : found->second;
}

const std::set<std::string>& sections() { return index().sections; }

bool is_section(const std::string& path) { return sections().contains(path); }

}  // namespace rematch
