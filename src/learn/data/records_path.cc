#include "learn/data/records_path.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/first_few.h"
#include "base/terminal_text.h"

namespace rematch {

void require_records_file(const std::string& path) {
  if (!is_dir(path)) return;
  Strings files;
  std::error_code unseen;
  for (const auto& entry : std::filesystem::directory_iterator(path, unseen)) {
    if (entry.path().extension() == ".jsonl")
      files.push_back(printable(shell_word(join_path(path, entry.path().filename().string()))));
  }
  std::ranges::sort(files);
  throw config_error(
      {.error = "the records are one JSONL file, not a directory",
       .where = path,
       .what = files.empty() ? "it is a directory without a .jsonl file"
                             : "it is a directory with " + first_few(files, 5),
       .fix = files.empty() ? "import the annotations with `rematch data from-coco`, `from-yolo` "
                              "or another command of docs/data.md"
                            : "give one of these files"});
}

}  // namespace rematch
