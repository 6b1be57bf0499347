#include "learn/estep/parse/object_rules.h"

#include "base/text.h"

namespace rematch {
namespace {

using Kind = JsonNode::Kind;

// The strings of `["…", …]` or `[["…", "…"], …]`; nullopt for any other shape.
std::optional<std::vector<const JsonNode*>> coordinate_strings(const JsonNode& value) {
  if (value.kind != Kind::kArray || value.items.empty()) return std::nullopt;
  std::vector<const JsonNode*> strings;
  const bool nested = value.items.front().kind == Kind::kArray;
  for (const JsonNode& item : value.items) {
    if (!nested) {
      strings.push_back(&item);
    } else if (item.kind == Kind::kArray && item.items.size() == 2) {
      strings.push_back(&item.items[0]);
      strings.push_back(&item.items[1]);
    } else {
      return std::nullopt;
    }
  }
  for (const JsonNode* string : strings) {
    if (string->kind != Kind::kString) return std::nullopt;
  }
  return strings;
}

bool legal_count(GeometryKind kind, size_t count) {
  return kind == GeometryKind::kBbox2d ? count == 4 : count >= 6 && count % 2 == 0;
}

// Fills geometry and coord_tokens; false when a string is anything but one coord token.
bool read_geometry(GeometryKind kind, const JsonNode& value, const ResponseTokens& response,
                   ParsedObject& object) {
  const auto strings = coordinate_strings(value);
  if (!strings || !legal_count(kind, strings->size())) return false;
  object.geometry.kind = kind;
  for (const JsonNode* string : *strings) {
    // Compare tokens, not text: an escaped or spelt-out coord token is several tokens.
    const int token = response.tokens.token_exactly(string->begin + 1, string->end - 1);
    const int bin = token < 0 ? -1 : response.coord_vocab.bin_of(response.token_ids[token]);
    if (bin < 0) return false;
    object.geometry.bins.push_back(bin);
    object.coord_tokens.push_back({token, token + 1});
  }
  return true;
}

}  // namespace

std::optional<int64_t> object_index(std::string_view key) {
  constexpr std::string_view kStem = "object_";
  if (key.size() <= kStem.size() || key.substr(0, kStem.size()) != kStem) return std::nullopt;
  int64_t index = 0;
  for (const char c : key.substr(kStem.size())) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + (c - '0');
    if (index > kMaxObjectIndex) index = kMaxObjectIndex + 1;
  }
  return index <= kMaxObjectIndex ? std::optional<int64_t>(index) : std::nullopt;
}

std::optional<ParsedObject> valid_object(const std::string& key, const JsonNode& value,
                                         const ResponseTokens& response) {
  const std::optional<int64_t> index = object_index(key);
  if (!index || value.kind != Kind::kObject || value.keys.size() != 2) return std::nullopt;
  const size_t desc_at = value.keys[0] == "desc" ? 0 : 1;
  const std::string& geometry_name = value.keys[1 - desc_at];
  if (value.keys[desc_at] != "desc" || (geometry_name != "bbox_2d" && geometry_name != "poly"))
    return std::nullopt;
  const JsonNode& desc = value.items[desc_at];
  if (desc.kind != Kind::kString) return std::nullopt;
  ParsedObject object;
  object.key = key;
  object.index = *index;
  object.desc = python_strip(desc.text);
  const GeometryKind kind = geometry_name == "poly" ? GeometryKind::kPoly : GeometryKind::kBbox2d;
  if (object.desc.empty() || !read_geometry(kind, value.items[1 - desc_at], response, object))
    return std::nullopt;
  return object;
}

}  // namespace rematch
