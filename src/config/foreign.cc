#include "config/foreign.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <system_error>

#include "base/text.h"
#include "config/schema.h"

namespace rematch {
namespace {

/// A typed name in the spelling of keys: no leading `-`, `_` for `-`, lower case.
std::string normalize(std::string name) {
  name.erase(0, std::min(name.find_first_not_of('-'), name.size()));
  for (char& c : name) {
    if (c == '-') c = '_';
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return name;
}

}  // namespace

const ForeignKey* find_foreign(const std::string& name) {
  const std::string wanted = normalize(name);
  for (const ForeignKey& row : foreign_table()) {
    for (const std::string& one : split(row.names, ' ')) {
      if (wanted == one) return &row;
    }
  }
  return nullptr;
}

std::string foreign_fix(const ForeignKey& row) {
  const std::string key = row.key;
  std::string answer = row.answer;
  if (key.empty()) return answer;
  return "use `" + key + "`" + (answer.empty() ? "" : ": " + answer);
}

std::string guess_key(const std::string& typed) {
  std::string name = normalize(typed);
  if (name.empty()) return "";
  if (find_key(name)) return name;
  const std::string last = name.substr(name.rfind('.') + 1);
  if (const ForeignKey* row = find_foreign(last)) return row->key;
  std::string found;  // that of rollouts, which people mean by `temperature`, else the first one
  for (const KeySpec& spec : schema()) {
    if (spec.state != KeyState::kHonoured || !spec.path.ends_with("." + name)) continue;
    if (found.empty() || spec.path == kRolloutMatching + "." + name) found = spec.path;
  }
  if (!found.empty()) return found;
  for (const std::string& near : suggest_keys("training", last)) {
    if (find_key(near)) return near;
  }
  return "";
}

std::string meant_value(const std::string& typed, const std::string& value) {
  const std::string name = normalize(typed);
  if (name != "imgsz" && name != "img_size") return value;
  int64_t side = 0;
  const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), side);
  const bool is_side =
      error == std::errc() && end == value.data() + value.size() && side > 0 && side < (1 << 20);
  return is_side ? std::to_string(side * side) : value;
}

}  // namespace rematch
