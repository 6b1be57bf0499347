#include "program/config/node.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kBriefLength = 60;

void append_brief(const Node& node, std::string& out) {
  if (out.size() > kBriefLength) return;
  if (node.is_null()) {
    out += "null";
  } else if (node.is_scalar()) {
    out += node.quoted ? "\"" + node.scalar + "\"" : node.scalar;
  } else {
    out += node.is_map() ? '{' : '[';
    const char* separator = "";
    for (const Node& item : node.items) {
      out += std::exchange(separator, ", ");
      append_brief(item, out);
    }
    for (const Member& member : node.members) {
      out += std::exchange(separator, ", ") + member.key + ": ";
      append_brief(member.value, out);
    }
    out += node.is_map() ? '}' : ']';
  }
}

bool is_false(const std::string& text) {
  return text == "false" || text == "False" || text == "FALSE";
}

bool is_zero(const std::string& text) {
  return text.find_first_of("0123456789") != std::string::npos &&
         text.find_first_not_of("0.+-") == std::string::npos;
}

}  // namespace

std::string Origin::text() const {
  if (!file) return "built in";
  return line > 0 ? fmt::format("{}:{}:{}", *file, line, column) : *file;
}

std::vector<Node> Node::as_list() const { return is_list() ? items : std::vector<Node>{*this}; }

const Node* Node::find(std::string_view key) const {
  for (const Member& member : members) {
    if (member.key == key) return &member.value;
  }
  return nullptr;
}

Node merge(Node base, const Node& upper) {
  if (!base.is_map() || !upper.is_map()) return upper;
  std::unordered_map<std::string_view, size_t> place;
  std::vector<const Member*> added;
  for (size_t i = 0; i < base.members.size(); ++i) place.emplace(base.members[i].key, i);
  for (const Member& member : upper.members) {
    const auto found = place.find(member.key);
    if (found == place.end()) {
      added.push_back(&member);
      continue;
    }
    Member& below = base.members[found->second];
    below.value = merge(std::move(below.value), member.value);
    below.key_origin = member.key_origin;
  }
  place.clear();  // views into base.members, which may move now
  for (const Member* member : added) base.members.push_back(*member);
  base.origin = upper.origin;
  return base;
}

bool is_off(const Node& node) {
  switch (node.kind) {
    case Node::Kind::kNull: return true;
    case Node::Kind::kScalar:
      return node.scalar.empty() ||
             (!node.quoted && (is_false(node.scalar) || is_zero(node.scalar)));
    case Node::Kind::kList: return node.items.empty();
    case Node::Kind::kMap: {
      if (const Node* enabled = node.find("enabled")) return is_off(*enabled);
      return std::ranges::all_of(node.members,
                                 [](const Member& member) { return is_off(member.value); });
    }
  }
  return false;
}

std::string shorten(const Node& node) {
  std::string text;
  append_brief(node, text);
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';  // keeps the text on one line
  }
  return shorten_bytes(text, kBriefLength);
}

}  // namespace rematch
