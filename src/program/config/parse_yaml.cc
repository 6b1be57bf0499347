// yaml-cpp reads the document. Its tree is copied, to control positions, duplicate keys, aliases
// and limits.
#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <array>
#include <optional>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "program/config/node.h"

namespace rematch {
namespace {

const std::string kCoreTag = "tag:yaml.org,2002:";

/// Thrown to stop reading a document that is too large or cannot be understood further.
struct StopReading {};

/// Copies a tree of yaml-cpp, in which an alias is the node of its anchor.
class TreeCopier {
 public:
  TreeCopier(const std::string& name, bool has_lines, const YamlLimits& limits,
             std::vector<Problem>& problems)
      : file_(std::make_shared<const std::string>(name)),
        has_lines_(has_lines),
        limits_(limits),
        problems_(problems) {}

  Origin origin(const YAML::Mark& mark) const {
    return has_lines_ ? Origin{file_, mark.line + 1, mark.column + 1} : Origin{file_, 0, 0};
  }

  [[noreturn]] void stop(const Origin& where, std::string error, std::string what,
                         std::string fix) {
    report(where, std::move(error), std::move(what), std::move(fix));
    throw StopReading{};
  }

  /// @throws StopReading
  Node copy(const YAML::Node& from) {
    Node node;
    copy_value(from, node);
    if (from.IsSequence() || from.IsMap()) copy_inner(from, node);
    return node;
  }

 private:
  void report(const Origin& where, std::string error, std::string what, std::string fix) {
    problems_.push_back({std::move(error), where.text(), std::move(what), std::move(fix)});
  }

  void check_tag(const std::string& tag, const Origin& where) {
    constexpr std::array kKnown = {"str", "int", "float", "bool", "null", "seq", "map"};
    const auto is_known = [&](const char* known) { return tag == kCoreTag + known; };
    if (tag.empty() || tag == "!" || tag == "?" || std::ranges::any_of(kKnown, is_known)) return;
    report(where, fmt::format("YAML tag `{}` is not supported", tag),
           "values are typed by the key they belong to", "remove the tag");
  }

  // Not inlined: their texts would take stack at every level of nesting.

  /// Copies the origin, and the text of a scalar.
  [[gnu::noinline]] void copy_value(const YAML::Node& from, Node& node) {
    node.origin = origin(from.Mark());
    if (++num_nodes_ > limits_.max_nodes)
      stop(node.origin, "the configuration is too large",
           fmt::format("more than {} values once aliases are expanded", limits_.max_nodes),
           "shorten the file; nested aliases multiply");
    check_tag(from.Tag(), node.origin);
    if (!from.IsScalar()) return;
    node.kind = Node::Kind::kScalar;
    node.scalar = from.Scalar();
    node.quoted = from.Tag() == "!" || from.Tag() == kCoreTag + "str";
    if (node.scalar.find('\0') != std::string::npos)
      report(node.origin, "a zero byte in a string", "it is written as an escape between quotes",
             "remove it");
  }

  [[gnu::noinline]] void check_depth(const YAML::Node& from, const Node& node) {
    if (std::ranges::any_of(open_, [&](const YAML::Node& outer) { return outer.is(from); }))
      stop(node.origin, "an alias refers to itself",
           "the value named by this anchor contains its alias",
           "write the value instead of the alias");
    if (std::ssize(open_) >= limits_.max_depth)
      stop(node.origin, "nested too deeply", fmt::format("more than {} levels", limits_.max_depth),
           "flatten the file; no key is nested that deeply");
  }

  /// Copies the items or members of a list or map.
  void copy_inner(const YAML::Node& from, Node& node) {
    check_depth(from, node);
    open_.push_back(from);
    node.kind = from.IsMap() ? Node::Kind::kMap : Node::Kind::kList;
    std::vector<Member> merged;  // from `<<`, the first wins
    for (const auto& inner : from) {
      if (from.IsMap()) {
        const Node key = copy(inner.first);
        add_member(node, merged, key, copy(inner.second));
      } else {
        node.items.push_back(copy(inner));
      }
    }
    for (Member& member : merged) {
      if (node.find(member.key) == nullptr) node.members.push_back(std::move(member));
    }
    open_.pop_back();
  }

  [[gnu::noinline]] void add_member(Node& map, std::vector<Member>& merged, const Node& key,
                                    Node value) {
    if (!key.is_scalar())
      stop(key.origin, "a key must be plain text", "this key is null, a list or a mapping",
           "write `name: value`");
    if (key.scalar == "<<" && !key.quoted) return merge_into(merged, value);
    const auto first = std::ranges::find(map.members, key.scalar, &Member::key);
    if (first != map.members.end())
      return report(key.origin, fmt::format("duplicate key `{}`", key.scalar),
                    fmt::format("first written at {}", first->key_origin.text()),
                    "keep one of the two");
    map.members.push_back({key.scalar, key.origin, std::move(value)});
  }

  void merge_into(std::vector<Member>& merged, const Node& value) {
    for (const Node& source : value.as_list()) {
      if (!source.is_map())
        return report(value.origin, "`<<` takes a mapping or a list of mappings",
                      fmt::format("found {}", shorten(source)),
                      "refer to an anchored mapping: `<<: *name`");
      merged.insert(merged.end(), source.members.begin(), source.members.end());
    }
  }

  std::shared_ptr<const std::string> file_;
  bool has_lines_;
  YamlLimits limits_;
  std::vector<Problem>& problems_;
  std::vector<YAML::Node> open_;  ///< lists and maps around the current value
  size_t num_nodes_ = 0;
};

}  // namespace

std::optional<Problem> check_bytes(std::string_view text, const std::string& name,
                                   const YamlLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return Problem{"the configuration is too large", name,
                   fmt::format("{} bytes; the limit is {}", text.size(), limits.max_bytes),
                   "check that this is the configuration"};
  }
  if (!is_valid_utf8(text))
    return Problem{"the configuration is not UTF-8 text", name, "invalid bytes",
                   "save the file as UTF-8"};
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (const size_t mark = text.find(kByteOrderMark, 1); mark != std::string_view::npos) {
    return Problem{"a byte order mark in the middle of the configuration", name,
                   fmt::format("at offset {}", mark),
                   "remove it: it is invisible, and only a file's first three bytes may be one"};
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const unsigned char c = static_cast<unsigned char>(text[i]);
    if (c < 0x20 && c != '\n' && c != '\t' && c != '\r') {
      return Problem{"a control character in the configuration", name,
                     fmt::format("byte {:#04x} at offset {}", c, i), "remove it"};
    }
  }
  return std::nullopt;
}

namespace {

/// Notes where a document begins. YAML::LoadAll() would not end on a text such as `'a', &b c`.
struct DocumentStart : YAML::EventHandler {
  using Text = std::string;
  using Mark = YAML::Mark;
  using Anchor = YAML::anchor_t;
  using Style = YAML::EmitterStyle::value;
  void OnDocumentStart(const Mark& at) override { mark = at; }
  void OnDocumentEnd() override {}
  void OnNull(const Mark&, Anchor) override {}
  void OnAlias(const Mark&, Anchor) override {}
  void OnScalar(const Mark&, const Text&, Anchor, const Text&) override {}
  void OnSequenceStart(const Mark&, const Text&, Anchor, Style) override {}
  void OnSequenceEnd() override {}
  void OnMapStart(const Mark&, const Text&, Anchor, Style) override {}
  void OnMapEnd() override {}
  Mark mark;
};

/// The 1-based line, up to `last`, that is indented with a tab; 0 for none.
int find_tab_line(std::string_view text, int last) {
  int number = 0;
  for (const std::string& line : split(text, '\n')) {
    if (++number > last) break;
    if (line.substr(0, line.find_first_not_of(" \t")).find('\t') != line.npos) return number;
  }
  return 0;
}

/// True if the value of a line, counted from 0, holds `: ` without quotes.
bool has_inner_colon(std::string_view text, int line) {
  const Strings lines = split(text, '\n');
  if (line < 0 || line >= std::ssize(lines)) return false;
  const std::string& typed = lines[line];
  const size_t value = typed.find(": ");
  return value != typed.npos && typed.find_first_of("\"'{", value) == typed.npos &&
         typed.find(": ", value + 2) != typed.npos;
}

}  // namespace

Node parse_yaml(std::string_view text, const std::string& name, bool has_lines,
                std::vector<Problem>& problems, const YamlLimits& limits) {
  if (auto problem = check_bytes(text, name, limits)) {
    problems.push_back(std::move(*problem));
    return {};
  }
  TreeCopier copier(name, has_lines, limits, problems);
  Node root{.origin = copier.origin({})};
  try {
    std::istringstream stream{std::string(text)};
    YAML::Parser parser(stream);
    DocumentStart document;
    if (parser.HandleNextDocument(document)) {
      if (parser.HandleNextDocument(document))
        copier.stop(copier.origin(document.mark), "more than one YAML document",
                    "a second one begins after `---`",
                    "keep one document per file; use `extends` to combine files");
      root = copier.copy(YAML::Load(std::string(text)));
    }
  } catch (const StopReading&) {
  } catch (const YAML::Exception& error) {
    const std::string where =
        has_lines && !error.mark.is_null()
            ? fmt::format("{}:{}:{}", name, error.mark.line + 1, error.mark.column + 1)
            : name;
    const int tab = has_lines ? find_tab_line(text, error.mark.line + 1) : 0;
    if (tab > 0) {
      problems.push_back({"not valid YAML", fmt::format("{}:{}", name, tab),
                          fmt::format("line {} is indented with a tab", tab),
                          "indent with spaces: YAML takes no tabs"});
    } else {
      problems.push_back(
          {"not valid YAML", where, error.msg,
           has_lines && has_inner_colon(text, error.mark.line)
               ? "put the value in double quotes: it holds `: `"
               : "correct the syntax; indentation is spaces, `key: value` needs a space"});
    }
  }
  return root;
}

}  // namespace rematch
