#include "import/directory_format.h"

#include <fmt/core.h>

#include <filesystem>
#include <fstream>

#include "base/terminal_text.h"

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
const char* reader_of(const fs::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".xml") return "from-voc";
  if (ending != ".json" && ending != ".yaml" && ending != ".yml") return "";
  const std::string text = beginning_of(path);
  const auto has = [&text](const char* part) { return text.find(part) != text.npos; };
  if (ending != ".json") return has("names:") && has("train:") ? "from-yolo" : "";
  if (has("\"imagePath\"") || has("\"shapes\"")) return "from-labelme";
  return has("\"images\"") || has("\"annotations\"") ? "from-coco" : "";
}

std::string reader_for(const fs::path& directory) {
  std::error_code error;
  if (fs::is_directory(directory / "Annotations", error)) return "from-voc";
  for (const fs::path& place : {directory, directory / "train", directory / "valid"}) {
    int num_left = kMostFiles;
    for (fs::directory_iterator entry(place, error), end; !error && entry != end && num_left > 0;
         entry.increment(error), --num_left) {
      if (!entry->is_regular_file(error)) continue;
      if (const std::string reader = reader_of(entry->path()); !reader.empty()) return reader;
    }
  }
  return "";
}

}  // namespace

std::string import_command(const std::string& directory) {
  const std::string reader = reader_for(directory);
  if (reader.empty()) return "";
  return fmt::format("rematch data {} {} --out data", reader, shell_word(directory));
}

std::string import_fix(const std::string& directory, const char* reader, const std::string& fix) {
  const std::string found = reader_for(directory);
  return found.empty() || found == reader
             ? fix
             : fmt::format("it looks like another format: `{}`", import_command(directory));
}

}  // namespace rematch
