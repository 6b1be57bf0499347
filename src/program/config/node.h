#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace rematch {

/// The place where a key or value was written.
struct Origin {
  /// path as the user gave it, or "--set a.b.c"; null = built in
  std::shared_ptr<const std::string> file;
  int line = 0;    ///< 1-based; 0 = the origin has no lines (--set)
  int column = 0;  ///< 1-based

  /// "file:line:col", or "--set a.b.c".
  std::string text() const;
};

struct Member;

/// A YAML value as text, without types: the schema assigns them.
struct Node {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string scalar;           ///< text of a scalar
  bool quoted = false;          ///< scalar in quotes, a block scalar, or tagged !!str
  Origin origin;                ///< first character of the value
  std::vector<Node> items;      ///< of a list
  std::vector<Member> members;  ///< of a map, in file order, keys distinct

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
  /// Items of a list; any other value counts as a list of one.
  std::vector<Node> as_list() const;
  /// Finds a member's value by its key, nullptr if absent. Cost: linear.
  const Node* find(std::string_view key) const;
};

/// One `key: value` of a map.
struct Member {
  std::string key;
  Origin key_origin;
  Node value;
};

/// Limits against hostile files, far above the needs of a configuration.
struct YamlLimits {
  size_t max_bytes = 1 << 20;  ///< of one file
  size_t max_nodes = 20000;    ///< of one file after aliases are expanded
  int max_depth = 64;          ///< nesting of lists and maps
};

/// Finds bytes that must not reach yaml-cpp; nullopt if there are none.
std::optional<Problem> check_bytes(std::string_view text, const std::string& name,
                                   const YamlLimits& limits = {});

/// Reads one YAML document into a tree. Duplicate keys, keys that are not strings, unknown tags,
/// self-referring aliases, alias bombs, several documents, bad UTF-8 and syntax errors become
/// problems; `<<` merge keys and aliases are expanded.
/// @param name      name of the document in positions
/// @param has_lines false for --set values: a position is then just `name`
/// @param problems  problems are appended; after a syntax error the tree is empty
Node parse_yaml(std::string_view text, const std::string& name, bool has_lines,
                std::vector<Problem>& problems, const YamlLimits& limits = {});

/// Merges `upper` over `base`: maps merge recursively, other values of `upper` replace those of
/// `base`. Keys of `base` come first. Cost: linear.
Node merge(Node base, const Node& upper);

/// Returns true for values that mean "not used": null, false, 0, an empty text or list, a map whose
/// `enabled` is off or, without `enabled`, whose members are all off.
bool is_off(const Node& node);

/// Formats a value for messages: one line of YAML flow style, cut to about 60 characters.
std::string shorten(const Node& node);

}  // namespace rematch
