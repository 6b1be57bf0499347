#include "program/config/override.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

/// The text with a letter for each sign that can make YAML drop a part of it.
std::string disarm(std::string_view text) {
  std::string disarmed(text);
  for (size_t i = 0; i < text.size(); ++i) {
    const bool in_core_tag = text.substr(i, 2) == "!!" || text.substr(0, i + 1).ends_with("!!");
    if (!in_core_tag && std::string_view("#&!%.").find(text[i]) != std::string_view::npos)
      disarmed[i] = '_';
  }
  return disarmed;
}

bool equal_disarmed(const Node& a, const Node& b) {
  const auto equal_members = [](const Member& x, const Member& y) {
    return disarm(x.key) == disarm(y.key) && equal_disarmed(x.value, y.value);
  };
  return a.kind == b.kind && disarm(a.scalar) == disarm(b.scalar) &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(),
                    equal_disarmed) &&
         std::equal(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(),
                    equal_members);
}

/// True if the parsed node contains the whole text. In doubt false: the user then quotes the value.
bool holds_all(const Node& node, std::string_view value) {
  if (value.starts_with("!!")) value = trim(value.substr(std::min(value.find(' '), value.size())));
  if (node.is_null()) {
    return value.empty() || value == "~" || value == "null" || value == "Null" || value == "NULL";
  }
  if (value.empty()) return true;
  if (node.is_scalar() && value[0] != '"' && value[0] != '\'') return node.scalar == value;
  std::vector<Problem> problems;
  const Node disarmed = parse_yaml(disarm(value), "", false, problems);
  return problems.empty() && !value.starts_with("---") && equal_disarmed(node, disarmed);
}

}  // namespace

Node read_override(const std::string& text, std::vector<Problem>& problems) {
  const size_t equals = text.find('=');
  const std::string path = text.substr(0, equals == std::string::npos ? text.size() : equals);
  const std::string name = "--set " + path;
  const std::vector<std::string> keys = split(path, '.');
  const bool bad_key =
      std::any_of(keys.begin(), keys.end(), [](const std::string& key) { return key.empty(); });
  if (equals == std::string::npos || bad_key || keys.size() > 32) {
    problems.push_back({"`--set` needs key=value", "--set " + text,
                        bad_key ? "a part of the key is empty" : "there is no `=`",
                        "write e.g. `--set training.max_steps=10`"});
    return {};
  }
  if (keys.front() == "extends" || keys.front() == "inherit") {
    problems.push_back({fmt::format("`{}` cannot be set on the command line", keys.front()), name,
                        "it names the bases of the file that contains it",
                        "write it into the YAML file"});
    return {};
  }
  const size_t num_problems = problems.size();
  const std::string_view value = trim(std::string_view(text).substr(equals + 1));
  Node node = parse_yaml(value, name, false, problems);
  if (problems.size() > num_problems) return {};
  if (!holds_all(node, value)) {
    problems.push_back(
        {"YAML would drop a part of this value", name,
         "outside quotes YAML gives `#`, `&`, `!`, `%`, `|`, `>`, `---`, `...` and "
         "line breaks a meaning",
         "quote the value: --set " + shell_word(path + "=" + python_json_string(value))});
    return {};
  }
  const Origin origin = node.origin;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    Node parent;
    parent.kind = Node::Kind::kMap;
    parent.origin = origin;
    parent.members.push_back({*key, origin, std::move(node)});
    node = std::move(parent);
  }
  return node;
}

}  // namespace rematch
