#include "tools/import/records_path.h"

#include <fmt/core.h>

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/import/directory_format.h"
#include "tools/import/image_files.h"

namespace rematch {
namespace {

/// The first files, and how many there are besides.
std::string shown_files(std::vector<std::string> files) {
  constexpr size_t kShown = 5;
  const size_t num_more = files.size() - std::min(files.size(), kShown);
  files.resize(files.size() - num_more);
  return join(files, ", ") + (num_more > 0 ? fmt::format(" and {} more", num_more) : "");
}

/// The file with "train" in the shortest name, else the only one, else any of them.
std::string training_file(std::vector<std::string> files) {
  const std::string first = files.size() == 1 ? files.front() : "one of these";
  std::erase_if(files, [](const std::string& file) { return file.find("train") == file.npos; });
  const auto shortest = std::min_element(
      files.begin(), files.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return shortest == files.end() ? first : *shortest;
}

}  // namespace

void require_records_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return;
  std::vector<std::string> files;
  for (const std::filesystem::directory_entry& entry : list_entries(path)) {
    if (entry.path().extension() == ".jsonl")
      files.push_back(printable(shell_word(join_path(path, entry.path().filename().string()))));
  }
  std::sort(files.begin(), files.end());
  const std::string command = import_command(path);
  const std::string import =
      command.empty() ? "write one with `rematch data from-coco`, `from-yolo` or `from-voc`"
                      : "write one: `" + command + "`, then give data/train.jsonl";
  throw UserError(
      ErrorKind::kConfig,
      {.error = "the records are one JSONL file, not a directory",
       .where = path,
       .what = files.empty() ? "it is a directory without a .jsonl file"
                             : "it is a directory with " + shown_files(files),
       .fix =
           files.empty() ? import : "give the file of training records: " + training_file(files)});
}

}  // namespace rematch
