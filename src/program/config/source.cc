#include "program/config/source.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/file.h"
#include "base/missing_path.h"
#include "base/terminal_text.h"
#include "program/config/override.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUseFile =
    "use the path of a YAML file; `extends` is relative to the file that names it";
constexpr size_t kMaxFiles = 200;  // of an `extends` tree
constexpr size_t kMaxChain = 32;   // depth of an `extends` tree

Problem directory_problem(const std::string& path, const std::string& named_at) {
  if (path_exists(fs::path(path) / "args.json")) {
    return {"this is the directory of a run, not a configuration", named_at,
            path + " holds an args.json",
            "use the YAML file that started the run; `rematch train FILE.yaml --resume` continues "
            "it"};
  }
  const bool is_model = path_exists(fs::path(path) / "config.json");
  return {is_model ? "this is a model, not a configuration" : "the configuration is a directory",
          named_at, path + (is_model ? " holds a config.json" : " is a directory"),
          is_model ? fmt::format("write a configuration for it: rematch init {} data/train.jsonl",
                                 shell_word(path))
                   : kUseFile};
}

/// Returns an error if `path` is a directory, a checkpoint or a JSONL of records instead of a
/// configuration file; else nullopt.
/// @param named_at  position that names the path
std::optional<Problem> check_file_kind(const std::string& path, const std::string& named_at) {
  if (is_dir(path)) return directory_problem(path, named_at);
  if (!path.ends_with(".jsonl") || !is_file(path)) return std::nullopt;
  return Problem{
      .error = "this is a JSONL of records, not a configuration",
      .where = named_at,
      .what = "a configuration is a YAML or JSON file",
      .fix = fmt::format("write a configuration for it: rematch init MODEL {}", shell_word(path))};
}

/// Reads files with their bases; a base shared by two files is read once.
class Loader {
 public:
  explicit Loader(std::vector<Problem>& problems) : problems_(problems) {}

  /// Reads `path` merged over its bases.
  /// @param named_at  position that names the file
  Node load(const std::string& path, const std::string& named_at) {
    const std::string id = canonical_path(path);
    if (const auto known = done_.find(id); known != done_.end()) return known->second;
    if (!may_open(path, id, named_at)) return {};
    chain_.push_back({path, id});
    Node node = merge_bases(read(path, named_at), path);
    chain_.pop_back();
    files_.push_back(path);
    done_.emplace(id, node);
    return node;
  }

  Strings take_files() { return std::move(files_); }

 private:
  struct Link {
    std::string path;
    std::string id;
  };

  static std::string canonical_path(const std::string& path) {
    std::error_code ignored;
    const fs::path canonical = fs::weakly_canonical(path, ignored);
    return canonical.empty() ? path : canonical.string();
  }

  bool may_open(const std::string& path, const std::string& id, const std::string& named_at) {
    const auto again = std::ranges::find(chain_, id, &Link::id);
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
    if (std::optional<Problem> wrong = check_file_kind(path, named_at)) {
      problems_.push_back(std::move(*wrong));
      return {};
    }
    std::error_code error;
    if (!fs::exists(path, error)) {
      if (chain_.size() == 1)
        throw missing_path("configuration file", path,
                           "give the path of a YAML file; `rematch init` writes one");
      problems_.push_back({"no such configuration file", named_at,
                           path + (error ? ": " + error.message() : " does not exist"), kUseFile});
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
                           fmt::format("the file contains {}", shorten(node)),
                           "write `section:` lines with `key: value` below"});
      return {};
    }
    return node;
  }

  Node merge_bases(Node own, const std::string& path) {
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
                           value.origin.text(), fmt::format("found {}", shorten(value)),
                           "write `extends: base.yaml` or `extends: [a.yaml, b.yaml]`"});
    }
    return names;
  }

  std::vector<Problem>& problems_;
  std::vector<Link> chain_;
  std::map<std::string, Node> done_;
  Strings files_;
};

}  // namespace

Source load_source(const std::string& path, const Strings& overrides,
                   std::vector<Problem>& problems) {
  Loader loader(problems);
  Source source;
  if (!path.empty()) source.root = loader.load(path, path);
  source.files = loader.take_files();
  source.root.kind = Node::Kind::kMap;
  for (const std::string& text : overrides) {
    const Node tree = read_override(text, problems);
    if (tree.is_map()) source.root = merge(std::move(source.root), tree);
  }
  return source;
}

}  // namespace rematch
