// yaml-cpp only provides parser events. The tree is built here, to control positions, duplicate
// keys, aliases and limits.
#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

#include "base/text.h"
#include "program/config/node.h"

namespace rematch {
namespace {

const std::string kCoreTag = "tag:yaml.org,2002:";

/// Thrown to stop reading a document that is too large or cannot be understood further.
struct StopReading {};

/// Number of values in a tree.
size_t size_of(const Node& node) {
  size_t size = 1;
  for (const Node& item : node.items) size += size_of(item);
  for (const Member& member : node.members) size += size_of(member.value);
  return size;
}

/// Levels of lists and maps.
int height_of(const Node& node) {
  int below = 0;
  for (const Node& item : node.items) below = std::max(below, height_of(item));
  for (const Member& member : node.members) below = std::max(below, height_of(member.value));
  return node.is_list() || node.is_map() ? below + 1 : 0;
}

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& name, bool has_lines, const YamlLimits& limits,
              std::vector<Problem>& problems)
      : file_(std::make_shared<const std::string>(name)),
        has_lines_(has_lines),
        limits_(limits),
        problems_(problems) {}

  Node take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    stop(origin(mark), "more than one YAML document", "a second `---` begins here",
         "keep one document per file; use `extends` to combine files");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    place({.origin = origin(mark)}, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      stop(origin(mark), "an alias refers to itself",
           "the value named by the anchor contains this alias",
           "write the value instead of the alias");
    }
    count_nodes(origin(mark), size_of(found->second) - 1);
    check_depth(origin(mark), height_of(found->second));
    place(found->second, YAML::NullAnchor);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    check_tag(tag, mark);
    if (value.find('\0') != std::string::npos) {
      report(origin(mark), "a zero byte in a string", "it is written as an escape between quotes",
             "remove it");
    }
    place({.kind = Node::Kind::kScalar,
           .scalar = value,
           .quoted = tag == "!" || tag == kCoreTag + "str",
           .origin = origin(mark)},
          anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Node::Kind::kList, tag, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Node::Kind::kMap, tag, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::anchor_t anchor;
    std::optional<Member> pending = {};  ///< a key whose value is not read yet
    bool pending_is_merge = false;       ///< the key is an unquoted `<<`
    std::vector<Member> merged = {};     ///< members from `<<`, the first wins
  };

  Origin origin(const YAML::Mark& mark) const {
    return has_lines_ ? Origin{file_, mark.line + 1, mark.column + 1} : Origin{file_, 0, 0};
  }
  void report(const Origin& where, std::string error, std::string what, std::string fix) {
    problems_.push_back({std::move(error), where.text(), std::move(what), std::move(fix)});
  }
  [[noreturn]] void stop(const Origin& where, std::string error, std::string what,
                         std::string fix) {
    report(where, std::move(error), std::move(what), std::move(fix));
    throw StopReading{};
  }

  void check_depth(const Origin& where, int more) {
    if (static_cast<int>(open_.size()) + more > limits_.max_depth)
      stop(where, "nested too deeply", fmt::format("more than {} levels", limits_.max_depth),
           "flatten the file; no key is nested that deeply");
  }

  void count_nodes(const Origin& where, size_t more) {
    num_nodes_ += more;
    if (num_nodes_ > limits_.max_nodes) {
      stop(where, "the configuration is too large",
           fmt::format("more than {} values once aliases are expanded", limits_.max_nodes),
           "shorten the file; nested aliases multiply");
    }
  }

  void check_tag(const std::string& tag, const YAML::Mark& mark) {
    if (tag.empty() || tag == "!" || tag == "?") return;
    for (const char* known : {"str", "int", "float", "bool", "null", "seq", "map"}) {
      if (tag == kCoreTag + known) return;
    }
    report(origin(mark), fmt::format("YAML tag `{}` is not supported", tag),
           "values are typed by the key they belong to", "remove the tag");
  }

  void open(Node::Kind kind, const std::string& tag, const YAML::Mark& mark,
            YAML::anchor_t anchor) {
    check_tag(tag, mark);
    check_depth(origin(mark), 1);
    if (!open_.empty() && open_.back().node.is_map() && !open_.back().pending)
      stop_key_not_scalar(origin(mark));
    open_.push_back({.node = {.kind = kind, .origin = origin(mark)}, .anchor = anchor});
  }

  void close() {
    Open level = std::move(open_.back());
    open_.pop_back();
    for (Member& member : level.merged) {
      if (level.node.find(member.key) == nullptr) level.node.members.push_back(std::move(member));
    }
    place(std::move(level.node), level.anchor);
  }

  [[noreturn]] void stop_key_not_scalar(const Origin& where) {
    stop(where, "a key must be plain text", "this key is null, a list or a mapping",
         "write `name: value`");
  }

  /// Stores a finished value as key, as value, as item or as the root.
  void place(Node node, YAML::anchor_t anchor) {
    count_nodes(node.origin, 1);
    if (anchor != YAML::NullAnchor) anchors_[anchor] = node;
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.pending) {
      if (!node.is_scalar()) stop_key_not_scalar(node.origin);
      parent.pending = Member{node.scalar, node.origin, {}};
      parent.pending_is_merge = node.scalar == "<<" && !node.quoted;
    } else {
      finish_member(parent, std::move(node));
    }
  }

  void finish_member(Open& parent, Node value) {
    Member member = std::move(*parent.pending);
    parent.pending.reset();
    if (parent.pending_is_merge) return merge_into(parent, value);
    const auto first = std::ranges::find(parent.node.members, member.key, &Member::key);
    if (first != parent.node.members.end()) {
      report(member.key_origin, fmt::format("duplicate key `{}`", member.key),
             fmt::format("first written at {}", first->key_origin.text()), "keep one of the two");
      return;
    }
    member.value = std::move(value);
    parent.node.members.push_back(std::move(member));
  }

  void merge_into(Open& parent, const Node& value) {
    const std::vector<Node> single{value};
    for (const Node& source : value.is_list() ? value.items : single) {
      if (!source.is_map()) {
        report(value.origin, "`<<` takes a mapping or a list of mappings",
               fmt::format("found {}", shorten(source)),
               "refer to an anchored mapping: `<<: *name`");
        return;
      }
      parent.merged.insert(parent.merged.end(), source.members.begin(), source.members.end());
    }
  }

  std::shared_ptr<const std::string> file_;
  bool has_lines_;
  YamlLimits limits_;
  std::vector<Problem>& problems_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Node> anchors_;
  size_t num_nodes_ = 0;
  int documents_ = 0;
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

/// The 1-based line, up to `last`, that is indented with a tab; 0 for none.
int find_tab_line(std::string_view text, int last) {
  int number = 0;
  while (!text.empty() && ++number <= last) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t word = std::min(line.find_first_not_of(" \t"), line.size());
    if (line.substr(0, word).find('\t') != line.npos) return number;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return 0;
}

/// True if the value of a line, counted from 0, holds `: ` without quotes.
bool has_inner_colon(std::string_view text, int line) {
  const std::vector<std::string> lines = split(text, '\n');
  if (line < 0 || line >= std::ssize(lines)) return false;
  const std::string& typed = lines[static_cast<size_t>(line)];
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
  TreeBuilder builder(name, has_lines, limits, problems);
  std::istringstream stream{std::string(text)};
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(builder)) {
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
  Node root = builder.take();
  if (!root.origin.file)
    root.origin =
        Origin{std::make_shared<const std::string>(name), has_lines ? 1 : 0, has_lines ? 1 : 0};
  return root;
}

}  // namespace rematch
