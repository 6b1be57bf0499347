#include "program/config/override.h"

#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <string_view>

#include "base/text.h"

namespace rematch {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

/// True if YAML keeps all of a quoted text, list or map: outside quotes it has no comment, anchor
/// or tag, and nothing follows it.
bool is_whole(std::string_view value) {
  char quote = 0, before = ' ';
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    const bool begins_word = std::string_view(" \t\n[{,:").find(before) != std::string_view::npos;
    before = c;
    if ((quote == '"' && c == '\\') || (quote == '\'' && value.substr(i, 2) == "''")) {
      ++i;
    } else if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (begins_word && (c == '"' || c == '\'')) {
      quote = c;
    } else if (begins_word && (c == '#' || c == '&' || c == '!')) {
      return false;
    }
  }
  const char first = value.front();
  return value.back() == (first == '[' ? ']' : first == '{' ? '}' : first);
}

/// Reads a value without blanks around it.
Node read_value(std::string_view value, const std::string& name, std::vector<Problem>& problems) {
  if (!value.empty() && std::string_view("\"'[{").find(value[0]) != std::string_view::npos) {
    Node node = parse_yaml(value, name, false, problems);
    if (problems.empty() && !is_whole(value)) {
      problems.push_back({"YAML would drop a part of this value", name,
                          "after a quote or a bracket YAML gives `#`, `&`, `!` and `...` a meaning",
                          "put quotes around each text, and nothing after the last one"});
    }
    return node;
  }
  Node node{.origin = {.file = std::make_shared<const std::string>(name)}};
  if (value.empty()) {
    problems.push_back({"`--set` has no value after `=`", name, "an empty variable of a shell?",
                        "write null for the default, or '\"\"' for an empty text"});
  } else if (std::optional<Problem> problem = check_bytes(value, name)) {
    problems.push_back(std::move(*problem));
  } else if (value != "~" && value != "null" && value != "Null" && value != "NULL") {
    node.kind = Node::Kind::kScalar;
    node.scalar = value;
  }
  return node;
}

}  // namespace

Node read_override(const std::string& text, std::vector<Problem>& problems) {
  const size_t equals = text.find('=');
  const std::string path = text.substr(0, equals);
  const std::string name = "--set " + path;
  const Strings keys = split(path, '.');
  const bool bad_key = contains(keys, "");
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
  std::vector<Problem> found;
  Node node = read_value(trim(std::string_view(text).substr(equals + 1)), name, found);
  problems.insert(problems.end(), found.begin(), found.end());
  if (!found.empty()) return {};
  const Origin origin = node.origin;
  for (auto key = keys.rbegin(); key != keys.rend(); ++key) {
    node = {.kind = Node::Kind::kMap,
            .origin = origin,
            .members = {Member{*key, origin, std::move(node)}}};
  }
  return node;
}

}  // namespace rematch
