#include "tools/import/image_files.h"

#include <algorithm>
#include <set>

#include "base/interrupt.h"
#include "base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnreadable[] = {".bmp",  ".tif",  ".tiff", ".dng", ".mpo", ".pfm",
                                       ".heic", ".heif", ".avif", ".gif", ".jxl", ".jp2"};

bool is_macos_copy(const fs::path& path) { return path.filename().string().starts_with("._"); }

void add_files(const fs::path& directory, const std::function<bool(const fs::path&)>& fits,
               std::set<fs::path>& visited, std::vector<fs::path>& files) {
  std::error_code unreachable;  // a link to itself, a missing target
  if (!visited.insert(fs::canonical(directory, unreachable)).second) return;
  throw_if_interrupted();
  std::vector<fs::directory_entry> folders;
  for (const fs::directory_entry& entry : list_entries(directory)) {
    if (entry.is_directory(unreachable)) {
      folders.push_back(entry);
    } else if (!is_macos_copy(entry.path()) && fits(entry.path()) &&
               (entry.is_regular_file(unreachable) || entry.is_symlink(unreachable))) {
      files.push_back(entry.path());
    }
  }
  // Links last: a file that can be reached with and without a link gets the name without it.
  std::ranges::sort(folders, {}, [](const auto& folder) {
    return std::pair(folder.is_symlink(), folder.path());
  });
  for (const fs::directory_entry& folder : folders) add_files(folder.path(), fits, visited, files);
}

}  // namespace

bool is_among(const std::string& name, std::span<const char* const> names) {
  return contains(names, lower_case(name));
}

bool is_readable_image_name(const fs::path& path) {
  return is_among(path.extension().string(), kImageEndings) && !is_macos_copy(path);
}

bool is_image_name(const fs::path& path) {
  return is_readable_image_name(path) ||
         (is_among(path.extension().string(), kUnreadable) && !is_macos_copy(path));
}

std::vector<fs::directory_entry> list_entries(const fs::path& directory) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(*entry);
  return entries;
}

std::vector<fs::path> list_files(const fs::path& directory,
                                 const std::function<bool(const fs::path&)>& fits) {
  std::vector<fs::path> files;
  std::set<fs::path> visited;
  add_files(directory, fits, visited, files);
  std::ranges::sort(files);
  return files;
}

}  // namespace rematch
