// yaml-cpp only provides parser events. The tree is built here, to control positions, duplicate
// keys, aliases and limits.
#include <fmt/core.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <map>
#include <optional>
#include <sstream>
#include <unordered_map>

#include "base/text.h"
#include "program/config/node.h"

namespace rematch {
namespace {

/// Thrown to stop reading a document that is too large or cannot be understood further.
struct StopReading {};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const std::string& name, bool has_lines, const YamlLimits& limits,
              std::vector<Problem>& problems)
      : file_(std::make_shared<const std::string>(name)),
        has_lines_(has_lines),
        limits_(limits),
        problems_(problems) {}

  Node take() { return std::move(root_); }
  bool has_document() const { return documents_ > 0; }

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (++documents_ == 1) return;
    stop(mark, "more than one YAML document", "a second `---` begins here",
         "keep one document per file; use `extends` to combine files");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    Node node;
    node.origin = origin(mark);
    place(std::move(node), mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    const auto found = anchors_.find(anchor);
    if (found == anchors_.end()) {
      stop(mark, "an alias refers to itself", "the value named by the anchor contains this alias",
           "write the value instead of the alias");
    }
    count_nodes(mark, found->second.nodes);
    if (static_cast<int>(open_.size()) + found->second.depth > limits_.max_depth)
      stop_too_deep(mark);
    place(found->second.node, mark, YAML::NullAnchor, found->second.depth);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    Node node;
    node.kind = Node::Kind::kScalar;
    node.scalar = value;
    node.quoted = tag == "!" || tag == "tag:yaml.org,2002:str";
    node.origin = origin(mark);
    check_tag(tag, mark);
    if (value.find('\0') != std::string::npos) {
      report(node.origin, "a zero byte in a string", "it is written as an escape between quotes",
             "remove it");
    }
    place(std::move(node), mark, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    check_tag(tag, mark);
    open(Node::Kind::kList, mark, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    check_tag(tag, mark);
    open(Node::Kind::kMap, mark, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Open {
    Node node;
    YAML::Mark mark;
    YAML::anchor_t anchor = YAML::NullAnchor;
    size_t nodes_before = 0;                       ///< nodes counted when it began
    int height = 1;                                ///< levels at and below this node
    std::optional<Member> pending;                 ///< a key whose value is not read yet
    bool pending_is_merge = false;                 ///< the key is an unquoted `<<`
    std::unordered_map<std::string, Origin> seen;  ///< keys so far
    std::vector<Member> merged;                    ///< members from `<<`, the first wins
  };
  struct Anchored {
    Node node;
    size_t nodes;
    int depth;
  };

  Origin origin(const YAML::Mark& mark) const {
    return has_lines_ ? Origin{file_, mark.line + 1, mark.column + 1} : Origin{file_, 0, 0};
  }
  void report(const Origin& where, std::string error, std::string what, std::string fix) {
    problems_.push_back({std::move(error), where.text(), std::move(what), std::move(fix)});
  }
  [[noreturn]] void stop(const YAML::Mark& mark, std::string error, std::string what,
                         std::string fix) {
    report(origin(mark), std::move(error), std::move(what), std::move(fix));
    throw StopReading{};
  }
  [[noreturn]] void stop_too_deep(const YAML::Mark& mark) {
    stop(mark, "nested too deeply", fmt::format("more than {} levels", limits_.max_depth),
         "flatten the file; no key is nested that deeply");
  }

  void count_nodes(const YAML::Mark& mark, size_t more) {
    num_nodes_ += more;
    if (num_nodes_ > limits_.max_nodes) {
      stop(mark, "the configuration is too large",
           fmt::format("more than {} values once aliases are expanded", limits_.max_nodes),
           "shorten the file; nested aliases multiply");
    }
  }

  void check_tag(const std::string& tag, const YAML::Mark& mark) {
    static const std::string kCore = "tag:yaml.org,2002:";
    if (tag.empty() || tag == "!" || tag == "?") return;
    for (const char* known : {"str", "int", "float", "bool", "null", "seq", "map"}) {
      if (tag == kCore + known) return;
    }
    report(origin(mark), fmt::format("YAML tag `{}` is not supported", tag),
           "values are typed by the key they belong to", "remove the tag");
  }

  void open(Node::Kind kind, const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (static_cast<int>(open_.size()) >= limits_.max_depth) stop_too_deep(mark);
    if (expects_key()) stop_key_not_scalar(mark);
    Open level;
    level.node.kind = kind;
    level.node.origin = origin(mark);
    level.mark = mark;
    level.anchor = anchor;
    level.nodes_before = num_nodes_;
    open_.push_back(std::move(level));
  }

  void close() {
    Open level = std::move(open_.back());
    open_.pop_back();
    for (Member& member : level.merged) {
      if (level.seen.emplace(member.key, member.key_origin).second)
        level.node.members.push_back(std::move(member));
    }
    num_closed_nodes_ = num_nodes_ - level.nodes_before + 1;
    place(std::move(level.node), level.mark, level.anchor, level.height);
  }

  bool expects_key() const {
    return !open_.empty() && open_.back().node.is_map() && !open_.back().pending;
  }
  [[noreturn]] void stop_key_not_scalar(const YAML::Mark& mark) {
    stop(mark, "a key must be plain text", "this key is null, a list or a mapping",
         "write `name: value`");
  }

  /// Stores a finished value as key, as value, as item or as the root.
  void place(Node node, const YAML::Mark& mark, YAML::anchor_t anchor, int height = 0) {
    count_nodes(mark, 1);
    if (anchor != YAML::NullAnchor) {
      const size_t nodes = node.is_list() || node.is_map() ? num_closed_nodes_ : 1;
      anchors_[anchor] = {node, nodes, height};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    parent.height = std::max(parent.height, height + 1);
    if (parent.node.is_list()) {
      parent.node.items.push_back(std::move(node));
    } else if (!parent.pending) {
      begin_member(parent, node, mark);
    } else {
      finish_member(parent, std::move(node), mark);
    }
  }

  void begin_member(Open& parent, const Node& key, const YAML::Mark& mark) {
    if (!key.is_scalar()) stop_key_not_scalar(mark);
    parent.pending = Member{key.scalar, key.origin, {}};
    parent.pending_is_merge = key.scalar == "<<" && !key.quoted;
  }

  void finish_member(Open& parent, Node value, const YAML::Mark& mark) {
    Member member = std::move(*parent.pending);
    parent.pending.reset();
    if (parent.pending_is_merge) {
      merge_into(parent, value, mark);
      return;
    }
    const auto [first, is_new] = parent.seen.emplace(member.key, member.key_origin);
    if (!is_new) {
      report(member.key_origin, fmt::format("duplicate key `{}`", member.key),
             fmt::format("first written at {}", first->second.text()), "keep one of the two");
      return;
    }
    member.value = std::move(value);
    parent.node.members.push_back(std::move(member));
  }

  void merge_into(Open& parent, const Node& value, const YAML::Mark& mark) {
    const std::vector<Node> single{value};
    for (const Node& source : value.is_list() ? value.items : single) {
      if (!source.is_map()) {
        report(origin(mark), "`<<` takes a mapping or a list of mappings",
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
  std::map<YAML::anchor_t, Anchored> anchors_;
  size_t num_nodes_ = 0;
  size_t num_closed_nodes_ = 0;
  int documents_ = 0;
};

/// Finds bytes that must not reach yaml-cpp; nullopt if there are none.
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
