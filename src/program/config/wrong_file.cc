#include "program/config/wrong_file.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/terminal_text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

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
  if (!path.ends_with(".jsonl") || !fs::is_regular_file(path, ignored)) return std::nullopt;
  return Problem{
      .error = "this is a JSONL of records, not a configuration",
      .where = named_at,
      .what = "a configuration is a YAML or JSON file",
      .fix = fmt::format("write a configuration for it: rematch init MODEL {}", shell_word(path))};
}

}  // namespace rematch
