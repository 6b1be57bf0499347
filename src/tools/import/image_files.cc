#include "tools/import/image_files.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kUnreadable[] = {".bmp", ".tif",  ".tiff", ".dng", ".mpo",
                                       ".pfm", ".heic", ".avif", ".gif"};

void add_images(const fs::path& directory, std::set<fs::path>& visited,
                std::vector<fs::path>& images) {
  std::vector<fs::directory_entry> entries;
  for (const auto& entry : fs::directory_iterator(directory)) entries.push_back(entry);
  // Links last: a file that can be reached with and without a link gets the name without it.
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.is_symlink(), a.path()) < std::pair(b.is_symlink(), b.path());
  });
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : entries) {
    std::error_code unreachable;  // a link to itself, a missing target
    if (entry.is_directory(unreachable)) {
      folders.push_back(entry.path());
    } else if (is_image_name(entry.path()) &&
               (entry.is_regular_file(unreachable) || entry.is_symlink(unreachable))) {
      images.push_back(entry.path());
    }
  }
  for (const fs::path& folder : folders) {
    if (visited.insert(fs::canonical(folder)).second) add_images(folder, visited, images);
  }
}

}  // namespace

bool is_among(const std::string& name, std::span<const char* const> names) {
  return std::find(names.begin(), names.end(), lower_case(name)) != names.end();
}

bool is_macos_copy(const fs::path& path) { return path.filename().string().starts_with("._"); }

bool is_readable_image_name(const fs::path& path) {
  return is_among(path.extension().string(), kImageEndings) && !is_macos_copy(path);
}

bool is_image_name(const fs::path& path) {
  return is_readable_image_name(path) ||
         (is_among(path.extension().string(), kUnreadable) && !is_macos_copy(path));
}

std::vector<std::string> find_with_ending(const fs::path& path) {
  std::vector<std::string> files;
  for (const std::string ending : kImageEndings) {
    std::string upper = ending;
    for (char& c : upper) c = static_cast<char>(std::toupper(c));
    for (const std::string& each : {ending, upper}) {
      std::error_code ignored;
      const fs::path file = path.string() + each;
      const bool is_new = std::none_of(files.begin(), files.end(), [&](const std::string& known) {
        return fs::equivalent(known, file, ignored);  // where letter case does not count
      });
      if (is_new && fs::is_regular_file(file, ignored)) files.push_back(file.string());
    }
  }
  return files;
}

std::vector<fs::directory_entry> list_entries(const fs::path& directory) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    entries.push_back(*entry);
  return entries;
}

std::vector<fs::path> list_images(const fs::path& directory) {
  std::vector<fs::path> images;
  std::set<fs::path> visited = {fs::canonical(directory)};
  add_images(directory, visited, images);
  std::sort(images.begin(), images.end());
  return images;
}

fs::path find_folder(const fs::path& directory, std::span<const char* const> names) {
  std::map<std::string, fs::path> folders;
  for (const fs::directory_entry& entry : list_entries(directory)) {
    std::error_code unreachable;
    if (entry.is_directory(unreachable))
      folders.emplace(lower_case(entry.path().filename().string()), entry.path());
  }
  for (const char* name : names) {
    if (const auto found = folders.find(name); found != folders.end()) return found->second;
  }
  return {};
}

}  // namespace rematch
