#include "program/config/wrong_file.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxLineBytes = 1 << 20;

/// The first line that is not blank, "" if there is none.
std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  char c = 0;
  while (line.size() < kMaxLineBytes && file.get(c)) {
    if (c == '\n' && !line.empty()) break;
    if (c != '\n' && c != '\r' && !(line.empty() && c == ' ')) line += c;
  }
  return line;
}

/// Member names of a line that is a JSON object; empty for other lines.
std::vector<std::string> parse_line_keys(const std::string& line) {
  std::vector<std::string> keys;
  if (!line.starts_with("{") || !is_valid_utf8(line)) return keys;
  const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object()) return keys;
  for (const auto& [key, value] : object.items()) keys.push_back(printable(key));
  return keys;
}

Problem directory_problem(const std::string& path, const std::string& named_at) {
  const std::string use_file =
      "use the path of a YAML file; `extends` is relative to the file that names it";
  std::error_code ignored;
  if (fs::exists(fs::path(path) / "args.json", ignored)) {
    return {"this is the directory of a run, not a configuration", named_at,
            path + " holds an args.json",
            "use the YAML file that started the run; `rematch train FILE.yaml --resume` continues "
            "it"};
  }
  const bool is_model = fs::exists(fs::path(path) / "config.json", ignored);
  return {is_model ? "this is a model, not a configuration" : "the configuration is a directory",
          named_at, path + (is_model ? " holds a config.json" : " is a directory"),
          is_model ? fmt::format("write a configuration for it: rematch init {} data/train.jsonl",
                                 shell_word(path))
                   : use_file};
}

}  // namespace

std::optional<Problem> check_file_kind(const std::string& path, const std::string& named_at) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return directory_problem(path, named_at);
  if (!fs::is_regular_file(path, ignored)) return std::nullopt;
  const std::vector<std::string> keys = parse_line_keys(first_line(path));
  const auto has = [&](const char* key) {
    return std::find(keys.begin(), keys.end(), key) != keys.end();
  };
  const bool is_record = has("images") || has("objects") || has("messages") || has("image");
  if (!is_record && !(path.ends_with(".jsonl") && !keys.empty())) return std::nullopt;
  return Problem{
      .error = "this is a JSONL of records, not a configuration",
      .where = named_at,
      .what = fmt::format("its first line holds {}", join(keys, ", ")),
      .fix = fmt::format("write a configuration for it: rematch init MODEL {}", shell_word(path))};
}

}  // namespace rematch
