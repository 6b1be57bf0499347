#include "config/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "base/file.h"
#include "base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 200;  // a larger `extends` tree is a mistake
constexpr size_t kMaxChain = 32;   // one file extending the next …

/// Reads files with their bases; a file shared by two others (a diamond) is read once.
class Loader {
 public:
  explicit Loader(std::vector<Problem>& problems) : problems_(problems) {}

  /// The tree of `path` with its bases below it. @param named_at where the file is named
  Node load(const std::string& path, const std::string& named_at) {
    const std::string id = identity(path);
    if (const auto known = done_.find(id); known != done_.end()) return known->second;
    if (!may_open(path, id, named_at)) return {};
    chain_.push_back({path, id});
    Node node = with_bases(read(path, named_at), path);
    chain_.pop_back();
    files_.push_back(path);
    done_.emplace(id, node);
    return node;
  }

  std::vector<std::string> take_files() { return std::move(files_); }

 private:
  struct Link {
    std::string path;
    std::string id;
  };

  static std::string identity(const std::string& path) {
    std::error_code ignored;
    const fs::path canonical = fs::weakly_canonical(path, ignored);
    return canonical.empty() ? path : canonical.string();
  }

  bool may_open(const std::string& path, const std::string& id, const std::string& named_at) {
    const auto again =
        std::find_if(chain_.begin(), chain_.end(), [&](const Link& link) { return link.id == id; });
    if (again != chain_.end()) {
      std::string cycle;
      for (auto link = again; link != chain_.end(); ++link) cycle += link->path + " -> ";
      problems_.push_back(
          {"`extends` forms a cycle", named_at, cycle + path, "remove one of these `extends`"});
      return false;
    }
    if (chain_.size() >= kMaxChain || done_.size() >= kMaxFiles) {
      problems_.push_back({"too many files extend each other", named_at,
                           fmt::format("{} files deep, {} files read", chain_.size(), done_.size()),
                           "merge some of the bases"});
      return false;
    }
    return true;
  }

  Node read(const std::string& path, const std::string& named_at) {
    std::error_code error;
    if (!fs::exists(path, error) || fs::is_directory(path, error)) {
      const bool directory = !error && fs::is_directory(path, error);
      problems_.push_back(
          {directory ? "the configuration is a directory" : "no such configuration file", named_at,
           path + (directory ? " is a directory"
                   : error   ? ": " + error.message()
                             : " does not exist"),
           "use the path of a YAML file; `extends` is relative to the file that names it"});
      return {};
    }
    std::string text;
    try {
      text = read_file(path);
    } catch (const UserError& failed) {
      problems_.push_back(failed.problems().front());
      return {};
    }
    Node node = parse_yaml(text, path, true, problems_);
    if (!node.is_map() && !node.is_null()) {
      problems_.push_back({"a configuration is a mapping of keys", node.origin.text(),
                           fmt::format("the file contains {}", brief(node)),
                           "write `section:` lines with `key: value` below"});
      return {};
    }
    return node;
  }

  Node with_bases(Node own, const std::string& path) {
    Node result;
    result.kind = Node::Kind::kMap;
    bool named_before = false;
    for (auto member = own.members.begin(); member != own.members.end();) {
      if (member->key != "extends" && member->key != "inherit") {
        ++member;
        continue;
      }
      if (named_before) {
        problems_.push_back({"both `extends` and `inherit` are given", member->key_origin.text(),
                             "they are synonyms", "use one list under `extends`"});
      }
      named_before = true;
      for (const Node* base : base_names(*member)) {
        Node below = load(join_path(fs::path(path).parent_path().string(), base->scalar),
                          base->origin.text());
        if (below.is_map()) result = merge(std::move(result), below);
      }
      member = own.members.erase(member);
    }
    if (own.is_map()) result = merge(std::move(result), own);
    result.origin = own.origin;
    return result;
  }

  std::vector<const Node*> base_names(const Member& member) {
    std::vector<const Node*> names;
    const Node& value = member.value;
    if (value.is_scalar()) names.push_back(&value);
    bool wrong = value.is_map();
    for (const Node& item : value.items) {
      wrong = wrong || !item.is_scalar();
      if (item.is_scalar()) names.push_back(&item);
    }
    if (wrong) {
      problems_.push_back({fmt::format("`{}` takes a path or a list of paths", member.key),
                           value.origin.text(), fmt::format("found {}", brief(value)),
                           "write `extends: base.yaml` or `extends: [a.yaml, b.yaml]`"});
    }
    return names;
  }

  std::vector<Problem>& problems_;
  std::vector<Link> chain_;
  std::map<std::string, Node> done_;
  std::vector<std::string> files_;
};

/// `a.b.c=value` as a separate tree; null when it is not of that form.
Node override_tree(const std::string& text, std::vector<Problem>& problems) {
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
                        "it belongs to the file whose bases it names",
                        "write it into the YAML file"});
    return {};
  }
  Node node = parse_yaml(text.substr(equals + 1), name, false, problems);
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

}  // namespace

Source load_source(const std::string& path, const std::vector<std::string>& overrides,
                   std::vector<Problem>& problems) {
  Loader loader(problems);
  Source source;
  if (!path.empty()) source.root = loader.load(path, path);
  source.files = loader.take_files();
  source.root.kind = Node::Kind::kMap;
  for (const std::string& text : overrides) {
    const Node tree = override_tree(text, problems);
    if (tree.is_map()) source.root = merge(std::move(source.root), tree);
  }
  return source;
}

}  // namespace rematch
