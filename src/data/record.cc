#include "data/record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "data/foreign_keys.h"

namespace rematch {
namespace {

constexpr const char* kConvertFix =
    "convert pixels to bins: bin = min(999, round(1000 * x / width)) for x and min(999, round(1000 "
    "* y / height)) for y";
/// Most objects of a record and vertices of an outline: matching compares them pairwise.
constexpr size_t kMaxItems = 16384;
const std::vector<std::string> kRecordFields = {"images", "objects", "width",    "height",
                                                "prompt", "summary", "metadata", "poly_points"};
const std::vector<std::string> kObjectFields = {"desc", "bbox_2d", "poly", "poly_points"};

[[noreturn]] void fail(const std::string& where, const std::string& error, const std::string& what,
                       const std::string& fix) {
  throw UserError(ErrorKind::kData, {.error = error, .where = where, .what = what, .fix = fix});
}

// A value for messages: its JSON, or its length if that is too long for a terminal line.
std::string show(const Json& value) {
  const std::string text = python_json(value);
  return text.size() <= 80 ? text : fmt::format("a value of {} characters", text.size());
}

// Reports a field of another program before a missing field: its advice is more useful.
void refuse_foreign_fields(const Json& value, const char* (*advice_for)(std::string_view),
                           const std::string& where) {
  for (const auto& member : value.items()) {
    if (const char* advice = advice_for(member.key())) {
      fail(where, fmt::format("unknown field {}", python_json_string(member.key())),
           show(member.value()), advice);
    }
  }
}

// Reports an unknown field, with the nearest known name.
void refuse_unknown_fields(const Json& value, const std::vector<std::string>& known,
                           const std::string& where) {
  for (const auto& member : value.items()) {
    if (std::find(known.begin(), known.end(), member.key()) != known.end()) continue;
    const std::vector<std::string> near = near_names(member.key(), known);
    fail(where, fmt::format("unknown field {}", python_json_string(member.key())),
         fmt::format("known fields: {}", join(known, ", ")),
         near.empty() ? "remove it, or move it into the record's \"metadata\""
                      : fmt::format("did you mean \"{}\"?", near.front()));
  }
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

int read_side(const Json& record, const char* key, const std::string& where) {
  const Json& value = require_field(record, key, where);
  const double number = value.is_number() ? value.get<double>() : 0.0;
  if (!(number >= 1) || number > std::numeric_limits<int>::max() || number != std::floor(number)) {
    fail(where, fmt::format("\"{}\" is not a positive integer", key), show(value),
         fmt::format("set it to the image's {} in pixels", key));
  }
  return static_cast<int>(number);
}

std::vector<std::string> read_images(const Json& record, const RecordContext& context) {
  const Json& value = require_field(record, "images", context.where);
  if (!value.is_array() || value.empty()) {
    fail(context.where, "\"images\" is not a list of paths", show(value),
         "write \"images\": [\"path/to/image.jpg\"]");
  }
  if (context.require_single_image && value.size() != 1) {
    fail(context.where, "\"images\" lists more than one path",
         fmt::format("{} paths; stage 2 trains on one image per record", value.size()),
         "write one record per image");
  }
  std::vector<std::string> paths;
  for (const Json& item : value) {
    const std::string path = item.is_string() ? item.get<std::string>() : std::string();
    if (path.empty() || path.find('\0') != std::string::npos) {
      fail(context.where, "an entry of \"images\" is not a path", show(item),
           "write the path of the image file as a string");
    }
    paths.push_back(join_path(context.directory, path));
  }
  return paths;
}

// The bin of a "<|coord_k|>" text, k 0..999 without leading zeros; nullopt for other texts.
std::optional<int> coord_token_bin(const std::string& text) {
  constexpr std::string_view kOpen = "<|coord_", kClose = "|>";
  if (text.size() <= kOpen.size() + kClose.size() || !text.starts_with(kOpen) ||
      !text.ends_with(kClose))
    return std::nullopt;
  const std::string digits = text.substr(kOpen.size(), text.size() - kOpen.size() - kClose.size());
  if (digits.size() > 3 || digits.find_first_not_of("0123456789") != std::string::npos)
    return std::nullopt;
  if (digits.size() > 1 && digits[0] == '0') return std::nullopt;
  return std::stoi(digits);
}

int read_bin(const Json& value, const std::string& where) {
  if (value.is_string()) {
    const std::optional<int> bin = coord_token_bin(value.get_ref<const std::string&>());
    if (bin) return *bin;
    fail(where, "a coordinate is not a coord token", show(value),
         "write an integer 0..999 or a string \"<|coord_0|>\" .. \"<|coord_999|>\"");
  }
  if (!value.is_number()) {
    fail(where, "a coordinate is not a number", show(value),
         "write an integer 0..999 or a string such as \"<|coord_5|>\"");
  }
  const double number = value.get<double>();
  if (number != std::floor(number)) {
    fail(where, "a coordinate is not an integer",
         fmt::format("{}; coordinates are bins 0..{}", show(value), kNumBins - 1), kConvertFix);
  }
  if (number < 0 || number >= kNumBins) {
    fail(where, "a coordinate is out of range",
         fmt::format("{}; coordinates are bins 0..{}", show(value), kNumBins - 1), kConvertFix);
  }
  return static_cast<int>(number);
}

std::vector<int> read_bbox(const Json& value, const std::string& where, bool allow_inverted) {
  if (!value.is_array() || value.size() != 4) {
    fail(where, "\"bbox_2d\" does not have four coordinates", show(value),
         "write \"bbox_2d\": [x1, y1, x2, y2] in bins 0..999");
  }
  std::vector<int> bins;
  for (const Json& item : value) bins.push_back(read_bin(item, where));
  if (!allow_inverted && (bins[0] > bins[2] || bins[1] > bins[3])) {
    fail(where, "\"bbox_2d\" is inverted",
         fmt::format("{}: {}", show(value), bins[0] > bins[2] ? "x1 > x2" : "y1 > y2"),
         "write left, top, right, bottom in this order; [x, y, width, height] must be converted");
  }
  return bins;
}

// Accepts flat [x, y, x, y, …] or nested [[x, y], …] lists, but no mixture.
std::vector<int> read_poly(const Json& value, const std::string& where) {
  const char* fix =
      "write \"poly\": [[x1, y1], [x2, y2], [x3, y3], ...] or [x1, y1, x2, y2, x3, y3, ...] in "
      "bins 0..999";
  if (!value.is_array()) fail(where, "\"poly\" is not a list", show(value), fix);
  const bool is_nested = !value.empty() && value.front().is_array();
  std::vector<int> bins;
  for (const Json& item : value) {
    if (item.is_array() != is_nested)
      fail(where, "\"poly\" mixes pairs and plain values", show(value), fix);
    if (!is_nested) {
      bins.push_back(read_bin(item, where));
      continue;
    }
    if (item.size() != 2)
      fail(where, "a vertex of \"poly\" is not a pair",
           fmt::format("{} (a polygon has one ring)", show(item)), fix);
    for (const Json& coordinate : item) bins.push_back(read_bin(coordinate, where));
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

Geometry read_geometry(const Json& object, const std::string& where, bool allow_inverted) {
  if (object.contains("line")) {
    fail(where, "the geometry \"line\" is not supported", show(object["line"]),
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
    return {.kind = GeometryKind::kBbox2d,
            .bins = read_bbox(object["bbox_2d"], where, allow_inverted)};
  return {.kind = GeometryKind::kPoly, .bins = read_poly(object["poly"], where)};
}

std::string read_desc(const Json& object, const std::string& where,
                      const ForbiddenTexts* forbidden) {
  const Json& value = require_field(object, "desc", where);
  if (!value.is_string())
    fail(where, "\"desc\" is not a string", show(value), "write the description as a string");
  std::string desc = python_strip(value.get_ref<const std::string&>());
  if (desc.empty())
    fail(where, "\"desc\" is blank", show(value), "describe the object, or remove it");
  if (desc.find_first_of("\n\r\t") != std::string::npos) {
    fail(where, "\"desc\" contains a line break or a tab", show(value), "replace it with a space");
  }
  if (std::any_of(desc.begin(), desc.end(),
                  [](char c) { return static_cast<unsigned char>(c) < 0x20; })) {
    fail(where, "\"desc\" contains a control character", show(value), "remove it");
  }
  if (const std::string* token = forbidden == nullptr ? nullptr : forbidden->find_in(desc);
      token != nullptr) {
    fail(where, "\"desc\" contains the text of an added token",
         fmt::format("{} in {}", *token, show(value)),
         "remove it: the tokenizer would read it as that token, not as text");
  }
  return desc;
}

SceneObject read_object(const Json& object, size_t object_idx, const RecordContext& context) {
  const std::string where =
      fmt::format("{}, object {} (objects[{}])", context.where, object_idx + 1, object_idx);
  if (!object.is_object())
    fail(where, "an object is not a JSON object", show(object),
         "write {\"desc\": ..., \"bbox_2d\": [...]}");
  refuse_foreign_fields(object, advice_for_object_key, where);
  SceneObject result;
  result.geometry = read_geometry(object, where, context.allow_inverted);
  refuse_unknown_fields(object, kObjectFields, where);
  result.desc = read_desc(object, where, context.forbidden);
  return result;
}

// Reads every object so that all problems of a record are reported together.
std::vector<SceneObject> read_objects(const Json& objects, const RecordContext& context) {
  std::vector<SceneObject> result;
  std::vector<Problem> problems;
  for (size_t i = 0; i < objects.size(); ++i) {
    try {
      result.push_back(read_object(objects[i], i, context));
    } catch (const UserError& error) {
      problems.insert(problems.end(), error.problems().begin(), error.problems().end());
    }
  }
  if (!problems.empty()) throw UserError(ErrorKind::kData, std::move(problems));
  return result;
}

// The user text of a record, byte for byte; empty if there is none.
std::string read_prompt(const Json& record, const RecordContext& context) {
  const auto found = record.find("prompt");
  if (found == record.end()) return "";
  const char* fix = "write the user's text, or remove \"prompt\" to use custom.user_prompt";
  if (!found->is_string()) fail(context.where, "\"prompt\" is not a string", show(*found), fix);
  const auto& prompt = found->get_ref<const std::string&>();
  if (python_strip(prompt).empty()) fail(context.where, "\"prompt\" is blank", show(*found), fix);
  if (const std::string* token =
          context.forbidden == nullptr ? nullptr : context.forbidden->find_in(prompt);
      token != nullptr) {
    fail(context.where, "\"prompt\" contains the text of an added token",
         fmt::format("{} in {}", *token, show(*found)), "describe the token in other words");
  }
  return prompt;
}

// Parses one line of a JSONL; its errors get a column but no line.
Json parse_line(std::string_view line, const std::string& where) {
  try {
    return parse_json(line, where);
  } catch (const UserError& error) {
    std::vector<Problem> problems = error.problems();
    for (Problem& problem : problems) {
      if (const std::string first_line = where + ":1:"; problem.where.starts_with(first_line))
        problem.where = where + ":" + problem.where.substr(first_line.size());
    }
    throw UserError(error.kind(), std::move(problems));
  }
}

}  // namespace

ForbiddenTexts::ForbiddenTexts(const std::vector<std::string>& texts) {
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

Sample read_record(std::string_view line, const RecordContext& context) {
  const Json record = parse_line(line, context.where);
  if (!record.is_object()) {
    fail(context.where, "a line is not a JSON object", show(record),
         "write one record per line: {\"images\": [...], \"objects\": [...], ...}");
  }
  refuse_foreign_fields(record, advice_for_record_key, context.where);
  refuse_unknown_fields(record, kRecordFields, context.where);
  Sample sample;
  sample.where = context.where;
  sample.image_paths = read_images(record, context);
  sample.width_px = read_side(record, "width", context.where);
  sample.height_px = read_side(record, "height", context.where);
  sample.prompt = read_prompt(record, context);
  const Json& objects = require_field(record, "objects", context.where);
  if (!objects.is_array())
    fail(context.where, "\"objects\" is not a list", show(objects),
         "write \"objects\": [] for an empty scene");
  if (objects.size() > kMaxItems)
    fail(context.where, "a record has too many objects",
         fmt::format("{}; at most {}", objects.size(), kMaxItems),
         "cut the image into several, one record each");
  sample.objects = read_objects(objects, context);
  return sample;
}

}  // namespace rematch
