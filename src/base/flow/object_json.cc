#include "base/flow/object_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr const char* kConvertFix =
    "convert pixels to bins: bin = min(999, round(1000 * x / width)) for x and min(999, round(1000 "
    "* y / height)) for y; `rematch data check FILE --fix OUT --unit pixels` does it, and --unit "
    "bins rounds bins with fractions";
constexpr double kMaxCoordinate = 1e6;  // far beyond any bin; keeps sums and squares exact

[[noreturn]] void fail(const std::string& where, const std::string& error, const std::string& what,
                       const std::string& fix) {
  throw data_error({.error = error, .where = where, .what = what, .fix = fix});
}

// "<|coord_k|>" with k 0..999 and no leading zero, as the vocabulary spells it.
std::optional<int> coord_token_bin(std::string_view text) {
  constexpr std::string_view kOpen = "<|coord_", kClose = "|>";
  if (text.size() <= kOpen.size() + kClose.size() || !text.starts_with(kOpen) ||
      !text.ends_with(kClose))
    return std::nullopt;
  const std::string_view digits =
      text.substr(kOpen.size(), text.size() - kOpen.size() - kClose.size());
  if (digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string_view::npos ||
      (digits.size() > 1 && digits[0] == '0'))
    return std::nullopt;
  return std::stoi(std::string(digits));
}

int read_bin(const Json& value, const std::string& where, const GeometryRules& rules) {
  if (value.is_string()) {
    const std::optional<int> bin = coord_token_bin(value.get_ref<const std::string&>());
    if (bin) return *bin;
    const std::string& text = value.get_ref<const std::string&>();
    const bool is_number = !text.empty() && text.find_first_not_of("+-.0123456789eE ") == text.npos;
    if (is_number)
      fail(where, "a coordinate is a number in quotes", show_json(value),
           "write it without quotes; `rematch data check FILE --fix OUT` does it");
    fail(where, "a coordinate is not a coord token", show_json(value),
         "write an integer 0..999 or a string \"<|coord_0|>\" .. \"<|coord_999|>\"");
  }
  if (!value.is_number()) {
    fail(where, "a coordinate is not a number", show_json(value),
         "write an integer 0..999 or a string such as \"<|coord_5|>\"");
  }
  const double number = value.get<double>();
  const bool in_range =
      rules.allow_beyond ? std::abs(number) <= kMaxCoordinate : number >= 0 && number < kNumBins;
  if (number == std::floor(number) && in_range) return static_cast<int>(number);
  if (number > 0 && number < 1)
    fail(where, "a coordinate is not an integer",
         show_json(value) + " looks normalized; coordinates are bins 0..999",
         "convert normalized numbers to bins: bin = min(999, round(1000 * number)); `rematch data "
         "check FILE --fix OUT --unit normalized` does it");
  fail(where,
       number == std::floor(number) ? "a coordinate is out of range"
                                    : "a coordinate is not an integer",
       fmt::format("{}; coordinates are bins 0..{}", show_json(value), kNumBins - 1), kConvertFix);
}

std::vector<int> read_bbox(const Json& value, const std::string& where,
                           const GeometryRules& rules) {
  if (!value.is_array() || value.size() != 4) {
    fail(where, "\"bbox_2d\" does not have four coordinates", show_json(value),
         "write \"bbox_2d\": [x1, y1, x2, y2] in bins 0..999");
  }
  std::vector<int> bins;
  for (const Json& item : value) bins.push_back(read_bin(item, where, rules));
  if (!rules.allow_inverted && (bins[0] > bins[2] || bins[1] > bins[3])) {
    fail(where, "\"bbox_2d\" is inverted",
         fmt::format("{}: {}", show_json(value), bins[0] > bins[2] ? "x1 > x2" : "y1 > y2"),
         "write left, top, right, bottom in this order; `rematch data check FILE --fix OUT` "
         "converts "
         "x, y, width, height where the numbers prove it");
  }
  return bins;
}

// Accepts flat [x, y, x, y, …] or nested [[x, y], …] lists, but no mixture.
std::vector<int> read_poly(const Json& value, const std::string& where,
                           const GeometryRules& rules) {
  const char* fix =
      "write \"poly\": [[x1, y1], [x2, y2], [x3, y3], ...] or [x1, y1, x2, y2, x3, y3, ...] in "
      "bins 0..999";
  if (!value.is_array()) fail(where, "\"poly\" is not a list", show_json(value), fix);
  const bool is_nested = !value.empty() && value.front().is_array();
  std::vector<int> bins;
  for (const Json& item : value) {
    if (item.is_array() != is_nested)
      fail(where, "\"poly\" mixes pairs and plain values", show_json(value), fix);
    if (!is_nested) {
      bins.push_back(read_bin(item, where, rules));
      continue;
    }
    if (item.size() != 2)
      fail(where, "a vertex of \"poly\" is not a pair",
           fmt::format("{} (a polygon has one ring)", show_json(item)), fix);
    for (const Json& coordinate : item) bins.push_back(read_bin(coordinate, where, rules));
  }
  if (bins.size() % 2 != 0)
    fail(where, "\"poly\" has an odd number of values", fmt::format("{} values", bins.size()), fix);
  if (bins.size() < 6)
    fail(where, "\"poly\" has fewer than three vertices",
         fmt::format("{} vertices", bins.size() / 2), fix);
  if (bins.size() / 2 > kMaxItems)
    fail(where, "\"poly\" has too many vertices",
         fmt::format("{}; at most {}", bins.size() / 2, kMaxItems), "simplify the outline");
  return bins;
}

}  // namespace

ForbiddenTexts::ForbiddenTexts(const Strings& texts) {
  for (const std::string& text : texts) {
    if (!text.empty()) by_first_byte_[static_cast<unsigned char>(text.front())].push_back(text);
  }
}

const std::string* ForbiddenTexts::find_in(std::string_view text) const {
  for (size_t begin = 0; begin < text.size(); ++begin) {
    for (const std::string& candidate : by_first_byte_[static_cast<unsigned char>(text[begin])]) {
      if (text.compare(begin, candidate.size(), candidate) == 0) return &candidate;
    }
  }
  return nullptr;
}

const Json& require_field(const Json& value, const char* key, const std::string& where) {
  const auto found = value.find(key);
  if (found == value.end()) {
    fail(where, fmt::format("the field \"{}\" is missing", key),
         fmt::format("none of its {} fields is \"{}\"", value.size(), key),
         fmt::format("add \"{}\"", key));
  }
  return *found;
}

Geometry read_geometry(const Json& object, const std::string& where, const GeometryRules& rules) {
  if (object.contains("line")) {
    fail(where, "the geometry \"line\" is not supported", show_json(object["line"]),
         "give the object a \"bbox_2d\" or a closed \"poly\", or remove it");
  }
  const bool has_bbox = object.contains("bbox_2d"), has_poly = object.contains("poly");
  if (has_bbox && has_poly)
    fail(where, "an object has two geometries", "both \"bbox_2d\" and \"poly\"",
         "keep exactly one of them");
  if (!has_bbox && !has_poly)
    fail(where, "an object has no geometry", "neither \"bbox_2d\" nor \"poly\"",
         "add exactly one of them");
  if (has_bbox)
    return {.kind = GeometryKind::kBbox2d, .bins = read_bbox(object["bbox_2d"], where, rules)};
  return {.kind = GeometryKind::kPoly, .bins = read_poly(object["poly"], where, rules)};
}

std::string read_desc(const Json& object, const std::string& where) {
  const Json& value = require_field(object, "desc", where);
  if (!value.is_string())
    fail(where, "\"desc\" is not a string", show_json(value), "write the description as a string");
  std::string desc = python_strip(value.get_ref<const std::string&>());
  if (desc.empty())
    fail(where, "\"desc\" is blank", show_json(value), "describe the object, or remove it");
  return desc;
}

void check_desc(const std::string& desc, const std::string& where,
                const ForbiddenTexts* forbidden) {
  const std::string shown = show_json(desc);
  if (desc.find_first_of("\n\r\t") != std::string::npos)
    fail(where, "\"desc\" contains a line break or a tab", shown, "replace it with a space");
  if (std::ranges::any_of(desc, [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
    fail(where, "\"desc\" contains a control character", shown, "remove it");
  }
  const std::string* token = forbidden == nullptr ? nullptr : forbidden->find_in(desc);
  if (token != nullptr) {
    fail(where, "\"desc\" contains the text of an added token",
         fmt::format("{} in {}", *token, shown),
         "remove it: the tokenizer would read it as that token, not as text");
  }
}

Json object_json(const std::string& desc, const Geometry& geometry) {
  return {{"desc", desc}, {geometry_key(geometry.kind), geometry.bins}};
}

}  // namespace rematch
