// Any bytes as a configuration: problems with positions, or a tree within its limits whose maps
// have distinct keys.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/text.h"
#include "program/config/node.h"

namespace {

constexpr rematch::YamlLimits kLimits{.max_bytes = 4096, .max_nodes = 400, .max_depth = 16};

/// Nodes of a tree, which it checks on the way.
size_t checked(const rematch::Node& node, int depth) {
  REMATCH_CHECK(depth <= kLimits.max_depth, "depth");
  size_t count = 1;
  std::set<std::string_view> keys;
  for (const rematch::Node& item : node.items) count += checked(item, depth + 1);
  for (const rematch::Member& member : node.members) {
    REMATCH_CHECK(keys.insert(member.key).second && node.find(member.key) == &member.value,
                  member.key);
    REMATCH_CHECK(member.key_origin.line >= 1 && member.key_origin.column >= 1, "position");
    count += checked(member.value, depth + 1);
  }
  return count;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::vector<rematch::Problem> problems;
  const rematch::Node root = rematch::parse_yaml(text, "fuzz.yaml", true, problems, kLimits);
  REMATCH_CHECK(checked(root, 0) <= kLimits.max_nodes + 1, "nodes");
  for (const rematch::Problem& problem : problems) {
    REMATCH_CHECK(
        problem.where.starts_with("fuzz.yaml") && !problem.error.empty() && !problem.fix.empty(),
        problem.where);
  }
  const rematch::Node twice = rematch::merge(root, root);
  REMATCH_CHECK(twice.kind == root.kind && twice.members.size() == root.members.size() &&
                    twice.items.size() == root.items.size(),
                "merge");
  REMATCH_CHECK(rematch::is_valid_utf8(rematch::shorten(root)), "brief");
  return 0;
}
