#include <algorithm>
#include <filesystem>
#include <map>

#include "base/missing_path.h"
#include "base/text.h"
#include "tools/import/foreign.h"
#include "tools/import/text_file.h"

namespace rematch {
namespace {

/// Adds a line of a file: a name, or `id,name` where `id` is a number or begins with a slash.
void add_line(const std::string& line, std::map<std::string, std::string>& names) {
  const size_t comma = line.find(',');
  const bool has_id = comma != line.npos && comma > 0 &&
                      (line[0] == '/' || line.find_first_not_of("0123456789") == comma);
  if (has_id) {
    names[line.substr(0, comma)] = python_strip(line.substr(comma + 1));
  } else {
    names[std::to_string(names.size())] = line;
  }
}

/// True for a text that is meant as a file.
bool has_list_ending(const std::string& names) {
  constexpr const char* kEndings[] = {".txt", ".names", ".csv", ".lst", ".yaml", ".yml", ".json"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](const char* ending) { return names.ends_with(ending); });
}

}  // namespace

std::map<std::string, std::string> read_class_names(const std::string& names) {
  std::map<std::string, std::string> result;
  std::error_code ignored;
  if (names.empty()) return result;
  const bool is_file = std::filesystem::is_regular_file(names, ignored);
  if (!is_file && (names.find('/') != names.npos || has_list_ending(names)))
    throw missing_path("file of class names", "--names " + names,
                       "check the path, or list the names: --names cat,dog");
  std::vector<std::string> lines = is_file ? read_lines(names) : split(names, ',');
  for (std::string& line : lines) line = is_valid_utf8(line) ? python_strip(line) : std::string();
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  for (const std::string& line : lines) add_line(line, result);
  return result;
}

}  // namespace rematch
