#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/missing_path.h"
#include "base/text.h"
#include "tools/import/image_files.h"
#include "tools/import/source_files.h"
#include "tools/import/values.h"

namespace rematch {
namespace {

[[noreturn]] void refuse(const std::string& path, const std::string& what) {
  throw data_error({.error = "this is not a list of class names",
                    .where = path,
                    .what = what,
                    .fix = "give one name a line, in the order of the classes, or a YAML with "
                           "names: {0: cat, 1: dog}"});
}

/// Divides "0,cat", "0: cat" or "/m/01,Cat" into id and name; nullopt for a name alone.
std::optional<std::pair<std::string, std::string>> split_id(const std::string& line) {
  const size_t first =
      line.starts_with('/') ? line.find(',') : line.find_first_not_of("0123456789");
  if (first == line.npos || first == 0 || (line[first] != ',' && line[first] != ':'))
    return std::nullopt;
  return std::pair(line.substr(0, first), python_strip(line.substr(first + 1)));
}

void refuse_double_keys(const YAML::Node& node) {
  std::set<std::string> keys;
  for (const auto& item : node) {
    if (node.IsMap() && item.first.IsScalar() && !keys.insert(item.first.Scalar()).second)
      throw YAML::Exception(item.first.Mark(),
                            fmt::format("the key \"{}\" is there twice", item.first.Scalar()));
    refuse_double_keys(node.IsMap() ? item.second : item);
  }
}

}  // namespace

YAML::Node read_yaml_file(const std::string& path) {
  YAML::Node yaml = YAML::Load(read_utf8(path));
  refuse_double_keys(yaml);
  bool has_begun = false;
  for (const std::string& line : read_lines(path)) {
    if (line == "---" && has_begun)
      throw YAML::Exception(YAML::Mark::null_mark(), "a second document (---)");
    has_begun = has_begun || (!line.empty() && line.find_first_of("#%") != 0);
  }
  return yaml;
}

NamesById::NamesById(const YAML::Node& yaml, const std::string& path) {
  const YAML::Node list = !yaml.IsMap() ? yaml : yaml["names"] ? yaml["names"] : yaml["categories"];
  if (!list.IsDefined() || list.IsNull()) refuse(path, "it has no \"names\"");
  if (!list.IsSequence() && !list.IsMap())
    refuse(path, "\"names\" is neither a list nor a mapping");
  for (const auto& item : list) {
    if (list.IsMap())
      add(std::to_string(item.first.as<int>()), item.second.as<std::string>(), path);
    else if (item.IsMap())
      add(item["id"].as<std::string>(), item["name"].as<std::string>(), path);
    else
      add("", item.as<std::string>(), path);
  }
}

NamesById::NamesById(const std::string& names) {
  if (names.empty()) return;
  const std::string ending = std::filesystem::path(names).extension();
  if (!is_file(names)) {
    if (names.find('/') != names.npos ||
        (ending.size() > 3 && names.find_first_of(", ") == names.npos))
      throw missing_path("file of class names", "--names " + names,
                         "check the path, or list the names: --names cat,dog");
    read_lines(split(names, ','), "--names", false);
  } else if (ending == ".yaml" || ending == ".yml" || ending == ".json") {
    try {
      *this = NamesById(read_yaml_file(names), names);
    } catch (const YAML::Exception& error) {
      refuse(names, error.what());
    }
  } else {
    read_lines(split(read_utf8(names), '\n'), names, true);
  }
  if (is_empty()) refuse(names, "it has no name");
}

void NamesById::read_lines(Strings lines, const std::string& path, bool is_file) {
  const auto has_comma = [](const std::string& line) { return line.find(',') != line.npos; };
  if (lines.size() > 1 && has_comma(lines[0]) && !split_id(lines[0]) && split_id(lines[1]))
    lines.erase(lines.begin());  // a header
  for (std::string& line : lines) {
    if (!is_valid_utf8(line)) refuse(path, "a name is not UTF-8");
    line = python_strip(line);
  }
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  const auto num_ids = std::ranges::count_if(
      lines, [](const std::string& line) { return split_id(line).has_value(); });
  for (const std::string& line : lines) {
    const auto id_and_name = split_id(line);
    const bool has_late_id =
        !id_and_name && has_comma(line) && line.back() >= '0' && line.back() <= '9';
    if (is_file && (has_late_id || line.find_first_of("{}=") != line.npos ||
                    line.starts_with('#') || line.ends_with(':') || is_image_name(line)))
      refuse(path, "it has the line " + show_json(line));
    if (num_ids > 0 && !id_and_name) refuse(path, "some lines have an id and others have none");
    const auto& [id, name] = id_and_name.value_or(std::pair("", line));
    add(id, name, path);
  }
}

void NamesById::add(const std::string& id, const std::string& name, const std::string& path) {
  const std::string key = id.empty() ? std::to_string(by_id_.size()) : id;
  if (!by_id_.try_emplace(key, name).second)
    refuse(path, fmt::format("it has the id {} twice", key));
}

Strings NamesById::in_order() const {
  std::vector<std::pair<int, std::string>> rows;
  for (const auto& [id, name] : by_id_) rows.emplace_back(std::atoi(id.c_str()), name);
  std::ranges::stable_sort(rows, {}, [](const auto& row) { return row.first; });
  Strings names;
  for (const auto& row : rows) names.push_back(row.second);
  return names;
}

std::optional<std::string> NamesById::find(const std::string& text, bool is_id) const {
  if (const auto known = by_id_.find(text); known != by_id_.end()) return known->second;
  return is_id ? std::nullopt : std::optional(text);
}

std::optional<std::string> NamesById::of_value(const Json& value) const {
  const std::optional<std::string> id = read_id(value);
  return id ? find(*id, !value.is_string()) : "";
}

}  // namespace rematch
