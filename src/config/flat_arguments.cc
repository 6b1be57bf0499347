#include "config/flat_arguments.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "base/text.h"
#include "config/foreign.h"
#include "config/schema.h"

namespace rematch {
namespace {

constexpr size_t kFewest = 3;  ///< fewest flat keys in a file of arguments

/// Our key for a flat one; "" if there is none.
std::string find_counterpart(const std::string& name) {
  if (name == "data") return "custom.train_jsonl";
  if (is_section(name) && find_key(name + "." + name)) return name + "." + name;
  if (const ForeignKey* row = find_foreign(name)) return row->key;
  for (const KeySpec& spec : schema()) {
    if (spec.state == KeyState::kHonoured && spec.path.ends_with("." + name)) return spec.path;
  }
  return "";
}

/// A value as one line of YAML; "" if it needs several lines.
std::string value_text(const Node& value) {
  const Node& one = value.is_list() && value.items.size() == 1 ? value.items.front() : value;
  if (one.is_scalar() && one.scalar.find('\n') == std::string::npos)
    return one.quoted ? "\"" + one.scalar + "\"" : one.scalar;
  return one.is_list() ? shorten(one) : "";
}

/// Keys with their values as nested YAML, grouped by section.
struct Tree {
  std::map<std::string, Tree> sections;
  std::vector<std::string> lines;

  void add(const std::string& path, const std::string& value) {
    const size_t dot = path.find('.');
    if (dot == std::string::npos) {
      lines.push_back(path + ": " + value);
    } else {
      sections[path.substr(0, dot)].add(path.substr(dot + 1), value);
    }
  }
  std::string text(const std::string& indent) const {
    std::string all;
    for (const std::string& line : lines) all += "\n" + indent + line;
    for (const auto& [name, section] : sections)
      all += "\n" + indent + name + ":" + section.text(indent + "  ");
    return all;
  }
};

std::string nest_keys(const std::vector<const Member*>& flat) {
  Tree tree;
  std::map<std::string, std::string> taken;  // if two names mean one key, the first counts
  std::string others;
  const std::string indent = "    ";
  for (const Member* member : flat) {
    const std::string key = find_counterpart(member->key),
                      value = meant_value(member->key, value_text(member->value));
    if (!key.empty() && !value.empty() && taken.emplace(key, value).second) {
      tree.add(key, value);
      continue;
    }
    const ForeignKey* row = find_foreign(member->key);
    const bool is_second = !key.empty() && taken.contains(key);
    others += fmt::format("\n{}# {}: {}", indent, member->key,
                          is_second ? "`" + key + "` is set above"
                          : row     ? foreign_fix(*row)
                                    : "no counterpart");
  }
  return tree.text(indent) + others;
}

}  // namespace

std::optional<Problem> check_flat_arguments(const Node& root) {
  std::vector<const Member*> flat;
  size_t num_known = 0;
  for (const Member& member : root.members) {
    const bool is_ours =
        find_key(member.key) != nullptr || (is_section(member.key) && !member.value.is_scalar());
    if (is_ours || member.key.find('.') != std::string::npos || member.value.is_map()) continue;
    flat.push_back(&member);
    if (!find_counterpart(member.key).empty()) ++num_known;
  }
  if (num_known < kFewest || 2 * flat.size() < root.members.size()) return std::nullopt;
  std::vector<std::string> names;
  for (const Member* member : flat) {
    if (names.size() < kFewest) names.push_back(member->key);
  }
  return Problem{
      .error = "this is a flat file of arguments; here keys are grouped in sections",
      .where = flat.front()->key_origin.text(),
      .what = fmt::format("{} keys at the top level: {}{}", flat.size(), join(names, ", "),
                          flat.size() > names.size() ? " …" : ""),
      .fix = "write them as follows, or begin with `rematch init MODEL JSONL`:" + nest_keys(flat)};
}

}  // namespace rematch
