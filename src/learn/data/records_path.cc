#include "learn/data/records_path.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/image_files.h"

namespace rematch {

void require_records_file(const std::string& path) {
  constexpr size_t kShown = 5;
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return;
  std::vector<std::string> files;
  for (const std::filesystem::directory_entry& entry : list_entries(path)) {
    if (entry.path().extension() == ".jsonl")
      files.push_back(printable(shell_word(join_path(path, entry.path().filename().string()))));
  }
  std::sort(files.begin(), files.end());
  // train.jsonl rather than a part of it, train-val.jsonl.
  std::string example = files.empty() ? "" : files.front();
  bool is_train = false;
  for (const std::string& file : files) {
    if (file.find("train") == file.npos || (is_train && file.size() >= example.size())) continue;
    example = file;
    is_train = true;
  }
  files.resize(std::min(files.size(), kShown));
  throw UserError(
      ErrorKind::kConfig,
      {.error = "the records are one JSONL file, not a directory",
       .where = path,
       .what = files.empty() ? "it is a directory without a .jsonl file"
                             : "it is a directory with " + join(files, ", "),
       .fix = files.empty() ? "import the annotations with `rematch data from-coco`, `from-yolo` "
                              "or another command of docs/data.md"
                            : "give the file of training records: " + example});
}

}  // namespace rematch
