#include "learn/data/record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "learn/data/foreign_file.h"

namespace rematch {
namespace {

const Strings kRecordFields = {"images", "objects", "width",    "height",
                               "prompt", "summary", "metadata", "poly_points"};
const Strings kObjectFields = {"desc", "bbox_2d", "poly", "poly_points"};

[[noreturn]] void fail(const std::string& where, const std::string& error, const std::string& what,
                       const std::string& fix) {
  throw data_error({.error = error, .where = where, .what = what, .fix = fix});
}

// Reports an unknown field before a missing one: its advice is more useful.
void refuse_unknown_fields(const Json& value, const Strings& known, const std::string& where) {
  for (const auto& member : value.items()) {
    if (contains(known, member.key())) continue;
    const Strings near = near_names(member.key(), known);
    fail(where, fmt::format("unknown field {}", python_json_string(member.key())),
         fmt::format("known fields: {}", join(known, ", ")),
         fmt::format("{}; `rematch data check FILE --fix OUT` renames the usual fields of other "
                     "programs; {}",
                     near.empty() ? "remove it, or move it into the record's \"metadata\""
                                  : fmt::format("did you mean \"{}\"?", near.front()),
                     kImportAdvice));
  }
}

int read_side(const Json& record, const char* key, const std::string& where) {
  const Json& value = require_field(record, key, where);
  const double number = value.is_number() ? value.get<double>() : 0.0;
  if (!(number >= 1) || number > std::numeric_limits<int>::max() || number != std::floor(number)) {
    fail(where, fmt::format("\"{}\" is not a positive integer", key), show_json(value),
         fmt::format("set it to the image's {} in pixels", key));
  }
  return static_cast<int>(number);
}

Strings read_images(const Json& record, const RecordContext& context) {
  const Json& value = require_field(record, "images", context.where);
  if (!value.is_array() || value.empty()) {
    fail(context.where, "\"images\" is not a list of paths", show_json(value),
         "write \"images\": [\"path/to/image.jpg\"]");
  }
  if (context.require_single_image && value.size() != 1) {
    fail(context.where, "\"images\" lists more than one path",
         fmt::format("{} paths; stage 2 trains on one image per record", value.size()),
         "write one record per image");
  }
  Strings paths;
  for (const Json& item : value) {
    const std::string path = item.is_string() ? item.get<std::string>() : std::string();
    if (path.empty() || path.find('\0') != std::string::npos) {
      fail(context.where, "an entry of \"images\" is not a path", show_json(item),
           "write the path of the image file as a string");
    }
    paths.push_back(join_path(context.directory, path));
  }
  return paths;
}

SceneObject read_object(const Json& object, size_t object_idx, const RecordContext& context) {
  const std::string where =
      fmt::format("{}, object {} (objects[{}])", context.where, object_idx + 1, object_idx);
  if (!object.is_object())
    fail(where, "an object is not a JSON object", show_json(object),
         "write {\"desc\": ..., \"bbox_2d\": [...]}");
  refuse_unknown_fields(object, kObjectFields, where);
  SceneObject result;
  result.geometry = read_geometry(object, where, {.allow_inverted = context.allow_inverted});
  if (context.name_all) {
    result.desc = *context.name_all;
    return result;
  }
  result.desc = read_desc(object, where);
  check_desc(result.desc, where, context.forbidden);
  return result;
}

// Reads every object so that all problems of a record are reported together.
Objects read_objects(const Json& objects, const RecordContext& context) {
  Objects result;
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
  if (!found->is_string())
    fail(context.where, "\"prompt\" is not a string", show_json(*found), fix);
  const auto& prompt = found->get_ref<const std::string&>();
  if (python_strip(prompt).empty())
    fail(context.where, "\"prompt\" is blank", show_json(*found), fix);
  if (const std::string* token =
          context.forbidden == nullptr ? nullptr : context.forbidden->find_in(prompt);
      token != nullptr) {
    fail(context.where, "\"prompt\" contains the text of an added token",
         fmt::format("{} in {}", *token, show_json(*found)), "describe the token in other words");
  }
  return prompt;
}

// Parses one line of a JSONL; its errors get a column but no line.
Json parse_line(std::string_view line, const std::string& where) {
  try {
    return parse_written_json(line, where);
  } catch (const UserError& error) {
    Problem problem = error.problems().front();
    if (const std::string first_line = where + ":1:"; problem.where.starts_with(first_line))
      problem.where = where + ":" + problem.where.substr(first_line.size());
    throw UserError(error.kind(), std::move(problem));
  }
}

}  // namespace

Sample read_record(std::string_view line, const RecordContext& context) {
  const Json record = parse_line(line, context.where);
  if (!record.is_object()) {
    fail(context.where, "a line is not a JSON object", show_json(record),
         "write one record per line: {\"images\": [...], \"objects\": [...], ...}");
  }
  refuse_unknown_fields(record, kRecordFields, context.where);
  Sample sample;
  sample.where = context.where;
  sample.image_paths = read_images(record, context);
  sample.width_px = read_side(record, "width", context.where);
  sample.height_px = read_side(record, "height", context.where);
  sample.prompt = read_prompt(record, context);
  const Json& objects = require_field(record, "objects", context.where);
  if (!objects.is_array())
    fail(context.where, "\"objects\" is not a list", show_json(objects),
         "write \"objects\": [] for an empty scene");
  if (objects.size() > kMaxItems)
    fail(context.where, "a record has too many objects",
         fmt::format("{}; at most {}", objects.size(), kMaxItems),
         "cut the image into several, one record each");
  sample.objects = read_objects(objects, context);
  return sample;
}

}  // namespace rematch
