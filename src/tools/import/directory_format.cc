#include "tools/import/directory_format.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/missing_path.h"
#include "base/terminal_text.h"
#include "learn/data/foreign_format.h"
#include "tools/import/image_files.h"
#include "tools/import/yolo_labels.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kBeginning = size_t{1} << 16;
constexpr int kMostFiles = 1000;  ///< of a directory that are looked at

std::string beginning_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kBeginning, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

/// "" for a file of no known format.
std::string reader_of(const fs::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".txt") return is_yolo_label_file(path) ? "from-yolo" : "";
  for (const char* known : {".xml", ".json", ".jsonl", ".yaml", ".yml", ".csv"}) {
    if (ending != known) continue;
    const std::optional<ForeignFormat> format =
        find_foreign_format(path.string(), beginning_of(path));
    return format ? format->command : "";
  }
  return "";
}

/// True if the reader takes the file, not its directory.
bool takes_file(const std::string& reader) {
  return reader == "from-csv" || reader == "from-qwen" || reader == "from-swift";
}

/// The reader of the first file of a known format, and what to give it.
std::pair<std::string, std::string> reader_for(const fs::path& directory) {
  for (const fs::path& place : {directory, find_folder(directory, kAnnotationFolders),
                                directory / "train", directory / "valid"}) {
    int num_left = kMostFiles;
    for (const fs::directory_entry& entry : list_entries(place)) {
      std::error_code unreachable;
      if (num_left-- == 0) break;
      if (!entry.is_regular_file(unreachable)) continue;
      if (const std::string reader = reader_of(entry.path()); !reader.empty())
        return {reader, (takes_file(reader) ? entry.path() : directory).string()};
    }
  }
  return {};
}

}  // namespace

std::string import_command(const std::string& directory) {
  const auto [reader, source] = reader_for(directory);
  if (reader.empty()) return "";
  return fmt::format("rematch data {} {} --out data", reader, shell_word(source));
}

std::string import_fix(const std::string& directory, const char* reader, const std::string& fix) {
  const std::string found = reader_for(directory).first;
  return found.empty() || found == reader
             ? fix
             : fmt::format("it looks like another format: `{}`", import_command(directory));
}

void refuse_other_format(const std::string& path, std::string_view text, std::string_view reader,
                         const std::string& error) {
  const std::optional<ForeignFormat> format = find_foreign_format(path, text);
  if (!format || reader == format->command) return;
  throw UserError(ErrorKind::kData, {.error = error,
                                     .where = path,
                                     .what = fmt::format("it is {}", format->name),
                                     .fix = format->fix});
}

void require_directory(const std::string& path, std::string_view reader) {
  if (fs::is_directory(path)) return;
  if (!fs::exists(path))
    throw missing_path("directory", path, "give the directory of the annotations");
  constexpr const char* kError = "expected a directory";
  refuse_other_format(path, beginning_of(path), reader, kError);
  const std::string parent = fs::path(path).parent_path().string();
  throw UserError(
      ErrorKind::kData,
      {.error = kError,
       .where = path,
       .what = "it is a file",
       .fix = fmt::format("give its directory: {}", shell_word(parent.empty() ? "." : parent))});
}

}  // namespace rematch
