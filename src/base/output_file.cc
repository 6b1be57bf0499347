#include "base/output_file.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/interrupt.h"

namespace rematch {
namespace {

/// Device and inode of what a path leads to, if it is a regular file.
std::optional<std::pair<uint64_t, uint64_t>> regular_file(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return std::nullopt;
  return std::pair<uint64_t, uint64_t>(info.st_dev, info.st_ino);
}

/// Refuses the log and the configuration of a run: a directory with args.json.
void refuse_run_files(const std::string& out) {
  const std::filesystem::path path(out);
  const std::string name = path.filename().string();
  const bool is_run_file =
      name == "logging.jsonl" || name == "args.json" || name == "effective_config.txt";
  if (!is_run_file || !regular_file(out) || !regular_file(path.parent_path() / "args.json")) return;
  throw config_error({.error = "the output would replace a file of a run",
                      .where = out,
                      .what = "a run wrote it, and resuming or reporting needs it",
                      .fix = "choose another file or directory for the output"});
}

std::string check_path(std::string path, const InputFiles& inputs) {
  inputs.refuse(path);
  refuse_run_files(path);
  return path;
}

}  // namespace

InputFiles::InputFiles(std::initializer_list<std::string> paths) {
  for (const std::string& path : paths) add(path);
}

void InputFiles::add(const std::string& path) {
  if (const auto file = regular_file(path)) files_.insert(*file);
}

void InputFiles::refuse(const std::string& out) const {
  const auto file = regular_file(out);
  if (!file || !files_.contains(*file)) return;
  throw config_error({.error = "the output would replace a file that is read",
                      .where = out,
                      .what = "it is an input of this command, under this or another name",
                      .fix = "choose another file or directory for the output"});
}

OutputFile::OutputFile(const std::string& path, const InputFiles& inputs)
    : replaces_earlier_(regular_file(path).has_value()), file_(check_path(path, inputs)) {
  count_interrupt_check();  // from here on a closed terminal may not end the process at once
}

bool write_output(const std::string& path, const InputFiles& inputs, std::string_view content) {
  OutputFile file(path, inputs);
  file.write(content);
  file.commit();
  return file.replaces_earlier();
}

}  // namespace rematch
