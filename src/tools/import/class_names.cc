#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/missing_path.h"
#include "base/text.h"
#include "tools/import/class_names.h"
#include "tools/import/foreign.h"
#include "tools/import/image_files.h"
#include "tools/import/json_value.h"
#include "tools/import/text_file.h"

namespace rematch {
namespace {

using ClassNames = std::map<std::string, std::string>;  // by id

[[noreturn]] void refuse(const std::string& path, const std::string& what, const std::string& fix) {
  throw UserError(
      ErrorKind::kData,
      {.error = "this is not a list of class names", .where = path, .what = what, .fix = fix});
}

/// A list of names, or `categories` with ids: Label Studio's notes.json, COCO.
ClassNames read_json_names(const std::string& text, const std::string& path) {
  const Json document = parse_json(text, path);
  const Json* categories = find_member(document, "categories");
  const Json& list = categories != nullptr ? *categories : document;
  if (!list.is_array()) refuse(path, "it has no \"categories\"", "give one name a line");
  ClassNames result;
  for (const Json& entry : list) {
    const std::optional<std::string> id = read_id(find_member(entry, "id"));
    const std::string name =
        entry.is_string() ? entry.get<std::string>() : text_member(entry, {"name"});
    if (name.empty()) refuse(path, show_json(entry), "give one name a line");
    result[id ? *id : std::to_string(result.size())] = python_strip(name);
  }
  return result;
}

/// Length of the id at the start of a line: a number before a comma or a colon, or text from a slash
/// to a comma; 0 for a line without one.
size_t id_length(const std::string& line) {
  const size_t end = line[0] == '/' ? line.find(',') : line.find_first_not_of("0123456789");
  return end == line.npos || (line[end] != ',' && line[end] != ':') ? 0 : end;
}

/// @throws UserError (data) for a line that is not a name
void check_line(const std::string& line, const std::string& path) {
  if (line.find_first_of("{}=") == line.npos && !line.starts_with('#') && !line.ends_with(':') &&
      !is_image_name(line))
    return;
  refuse(path, fmt::format("it has the line {}", show_json(line)),
         "give one name a line, in the order of the classes, or a YAML with `names`");
}

/// Names one a line, or lines of an id and a name in either order.
ClassNames names_of_lines(const std::vector<std::string>& lines) {
  const auto all = [&](const auto& fits) { return std::all_of(lines.begin(), lines.end(), fits); };
  const bool have_ids = all([](const std::string& line) { return id_length(line) > 0; });
  const bool end_in_ids = !have_ids && all([](const std::string& line) {
    const size_t comma = line.rfind(',');
    return comma != line.npos && comma > 0 && comma + 1 < line.size() &&
           line.find_first_not_of("0123456789 ", comma + 1) == line.npos;
  });
  ClassNames names;
  for (const std::string& line : lines) {
    if (const size_t length = id_length(line); have_ids || (length > 0 && line[length] == ',')) {
      names[line.substr(0, length)] = python_strip(line.substr(length + 1));
    } else if (end_in_ids) {
      const size_t comma = line.rfind(',');
      names[python_strip(line.substr(comma + 1))] = python_strip(line.substr(0, comma));
    } else {
      names[std::to_string(names.size())] = line;
    }
  }
  return names;
}

/// True for a text that is meant as a file.
bool has_list_ending(const std::string& names) {
  constexpr const char* kEndings[] = {".txt", ".names", ".csv", ".lst", ".yaml", ".yml", ".json"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](const char* ending) { return names.ends_with(ending); });
}

}  // namespace

std::map<std::string, std::string> read_yaml_names(const YAML::Node& yaml,
                                                   const std::string& path) {
  constexpr const char* kFix = "write names: {0: cat, 1: dog, …}";
  const YAML::Node names = yaml.IsMap() ? yaml["names"] : YAML::Node();
  if (!names.IsDefined() || names.IsNull()) refuse(path, "it has no \"names\"", kFix);
  if (!names.IsSequence() && !names.IsMap())
    refuse(path, "\"names\" is neither a list nor a mapping", kFix);
  ClassNames result;
  for (size_t i = 0; names.IsSequence() && i < names.size(); ++i)
    result[std::to_string(i)] = names[i].as<std::string>();
  if (!names.IsMap()) return result;
  for (const auto& item : names)
    result[std::to_string(item.first.as<int>())] = item.second.as<std::string>();
  return result;
}

std::map<std::string, std::string> read_class_names(const std::string& names) {
  std::error_code ignored;
  if (names.empty()) return {};
  const bool is_file = std::filesystem::is_regular_file(names, ignored);
  if (!is_file && (names.find('/') != names.npos || has_list_ending(names)))
    throw missing_path("file of class names", "--names " + names,
                       "check the path, or list the names: --names cat,dog");
  if (is_file && (names.ends_with(".yaml") || names.ends_with(".yml"))) {
    try {
      return read_yaml_names(YAML::Load(read_file(names)), names);
    } catch (const YAML::Exception& error) {
      refuse(names, error.what(), "correct it, or give one name a line");
    }
  }
  const std::string text = is_file ? std::string(text_of(read_file(names), names)) : names;
  if (is_file && (text.starts_with('{') || text.starts_with('[')))
    return read_json_names(text, names);
  std::vector<std::string> lines = split(text, is_file ? '\n' : ',');
  for (std::string& line : lines) line = is_valid_utf8(line) ? python_strip(line) : std::string();
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines) {
    if (is_file) check_line(line, names);
  }
  return names_of_lines(lines);
}

}  // namespace rematch
