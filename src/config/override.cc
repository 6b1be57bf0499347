#include "config/override.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/json.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr std::string_view kBlank = " \t\r\n";

std::string_view trim(std::string_view text) {
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

bool is_blank(char c) { return kBlank.find(c) != std::string_view::npos; }

/// A part of a value that YAML does not read as part of the value.
struct LostPart {
  std::string_view text;
  const char* taken_for;
};

std::string_view line_at(std::string_view text, size_t begin) {
  return trim(text.substr(begin, text.find('\n', begin) - begin));
}

/// Finds the end of the quoted text at `begin`, just past its closing quote.
size_t find_quotes_end(std::string_view text, size_t begin) {
  const char quote = text[begin];
  for (size_t i = begin + 1; i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text[i] == quote) {
      if (quote == '\'' && text.substr(i + 1, 1) == "'") {
        ++i;
      } else {
        return i + 1;
      }
    }
  }
  return text.size();
}

/// Finds the first part outside quotes that YAML drops from a value that is not a plain scalar. If
/// unsure, a part counts as dropped: the user then quotes it.
std::optional<LostPart> find_dropped_part(std::string_view value) {
  bool begins_token = true;
  for (size_t i = 0; i < value.size(); ++i) {
    const char c = value[i];
    const bool after_blank = i == 0 || is_blank(value[i - 1]);
    if (begins_token && (c == '"' || c == '\'')) {
      i = find_quotes_end(value, i) - 1;
      begins_token = false;
      if (value.substr(i + 1, 1) == "#") return LostPart{line_at(value, i + 1), "a comment"};
      continue;
    }
    if (c == '#' && (after_blank || begins_token)) return LostPart{line_at(value, i), "a comment"};
    if (c == '&' && begins_token) {
      const size_t end = value.find_first_of(" \t\r\n,[]{}", i);
      return LostPart{value.substr(i, end - i), "an anchor"};
    }
    if (c == '!' && begins_token && value.substr(i, 2) != "!!") {
      const size_t end = value.find_first_of(" \t\r\n,[]{}", i);
      return LostPart{value.substr(i, end - i), "a tag"};
    }
    // Brackets, ",", ": " and the dash of a block list end a token.
    const bool is_indicator = std::string_view("[]{},").find(c) != std::string_view::npos ||
                              (c == ':' && i + 1 < value.size() && is_blank(value[i + 1])) ||
                              (c == '-' && begins_token);
    begins_token = is_indicator || (begins_token && is_blank(c));
  }
  return std::nullopt;
}

/// Finds the part of a plain scalar that is missing in YAML's result.
LostPart find_lost_plain_part(std::string_view value) {
  const std::string_view first = line_at(value, 0);
  if (value[0] == '%') return {first, "a directive"};
  if (value.starts_with("---") || value.starts_with("..."))
    return {value.substr(0, 3), "a document mark"};
  if (value[0] == '|' || value[0] == '>') return {value.substr(0, 1), "the sign of a block"};
  for (size_t i = 0; i < value.size(); ++i) {
    if (value[i] == '#' && (i == 0 || is_blank(value[i - 1])))
      return {line_at(value, i), "a comment"};
  }
  if (const auto dropped = find_dropped_part(value)) return *dropped;
  for (const char* mark : {"\n...", "\n---", "\n%"}) {
    if (const size_t at = value.find(mark); at != std::string_view::npos)
      return {line_at(value, at + 1), "a document mark or a directive"};
  }
  return value.find('\n') == std::string_view::npos ? LostPart{value, "something else"}
                                                    : LostPart{"a line break", "a space"};
}

bool is_null_word(std::string_view value) {
  return value.empty() || value == "~" || value == "null" || value == "Null" || value == "NULL";
}

/// Finds the part of a value that YAML drops; nullopt if the node has the whole value.
std::optional<LostPart> find_lost_part(std::string_view value, const Node& node) {
  if (value.starts_with("!!")) value = trim(value.substr(std::min(value.find(' '), value.size())));
  if (node.is_null())
    return is_null_word(value) ? std::nullopt : std::optional(find_lost_plain_part(value));
  if (value.empty()) return std::nullopt;
  const bool is_quoted = value[0] == '"' || value[0] == '\'';
  if (node.is_scalar() && !is_quoted)
    return node.scalar == value ? std::nullopt : std::optional(find_lost_plain_part(value));
  if (value[0] == '%' || value.starts_with("---") || value.starts_with("..."))
    return find_lost_plain_part(value);
  if (const auto dropped = find_dropped_part(value)) return dropped;
  // After the closing quote or bracket there can only be a document end, or another document, which
  // parse_yaml refuses.
  if (value.ends_with("...") && (is_quoted || value[0] == '[' || value[0] == '{'))
    return LostPart{"...", "a document mark"};
  return std::nullopt;
}

/// The `--set` argument with the value in YAML's double quotes, all in the shell's single quotes.
std::string quote_argument(const std::string& path, std::string_view value) {
  std::string argument;
  for (const char c : path + "=" + python_json_string(value))
    argument += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return "--set '" + argument + "'";
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
  if (const auto lost = find_lost_part(value, node)) {
    problems.push_back({"YAML would drop a part of this value", name,
                        fmt::format("it takes `{}` for {}", lost->text, lost->taken_for),
                        fmt::format("quote the value: {}", quote_argument(path, value))});
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
