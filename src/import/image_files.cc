#include "import/image_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/terminal_text.h"
#include "import/foreign.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kReadable[] = {".jpg", ".jpeg", ".png", ".webp"};
constexpr const char* kUnreadable[] = {".bmp", ".tif",  ".tiff", ".dng", ".mpo",
                                       ".pfm", ".heic", ".avif", ".gif"};

std::string lowercase_extension(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  return ending;
}

/// Entries sorted by name, links last: a file that can be reached with and without a link gets the
/// name without the link.
std::vector<fs::directory_entry> list_entries(const fs::path& directory) {
  std::vector<fs::directory_entry> entries;
  for (const auto& entry : fs::directory_iterator(directory)) entries.push_back(entry);
  std::sort(entries.begin(), entries.end(), [](const auto& a, const auto& b) {
    return std::pair(a.is_symlink(), a.path()) < std::pair(b.is_symlink(), b.path());
  });
  return entries;
}

void add_images(const fs::path& directory, std::set<fs::path>& visited,
                std::vector<fs::path>& images) {
  std::vector<fs::path> folders;
  for (const fs::directory_entry& entry : list_entries(directory)) {
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

std::vector<fs::path> list_files(const fs::path& directory, const std::string& ending) {
  std::vector<fs::path> files;
  if (!fs::is_directory(directory)) return files;
  for (const auto& entry : fs::directory_iterator(directory)) {
    std::error_code unreachable;
    if (lowercase_extension(entry.path()) == ending && entry.is_regular_file(unreachable))
      files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

bool is_readable_image_name(const fs::path& path) {
  return std::count(std::begin(kReadable), std::end(kReadable), lowercase_extension(path)) > 0;
}

bool is_image_name(const fs::path& path) {
  return is_readable_image_name(path) ||
         std::count(std::begin(kUnreadable), std::end(kUnreadable), lowercase_extension(path)) > 0;
}

std::vector<fs::path> list_images(const fs::path& directory) {
  std::vector<fs::path> images;
  std::set<fs::path> visited = {fs::canonical(directory)};
  add_images(directory, visited, images);
  std::sort(images.begin(), images.end());
  return images;
}

void require_directory(const fs::path& path) {
  if (fs::is_directory(path)) return;
  const bool exists = fs::exists(path);
  const std::string parent = path.parent_path().string();
  throw UserError(ErrorKind::kData,
                  {.error = "expected a directory",
                   .where = path.string(),
                   .what = exists ? "it is a file" : "there is no such directory",
                   .fix = exists ? fmt::format("give its directory: {}",
                                               shell_word(parent.empty() ? "." : parent))
                                 : "give the directory of the annotations"});
}

std::map<std::string, std::vector<fs::path>> list_annotations(const fs::path& directory,
                                                              const std::string& ending,
                                                              const std::string& wanted) {
  std::map<std::string, std::vector<fs::path>> splits;
  if (std::vector<fs::path> files = list_files(directory, ending); !files.empty()) {
    for (const char* folder : {"train", "val", "valid", "test"}) {
      if (list_files(directory / folder, ending).empty()) continue;
      throw UserError(
          ErrorKind::kData,
          {.error = "annotations are both in the directory and in its split folders",
           .where = directory.string(),
           .what = fmt::format("{} and files in {}/", files.front().filename().string(), folder),
           .fix = "give one folder at a time, with --split NAME"});
    }
    const std::string split = find_split_word(directory.filename().string());
    splits[!wanted.empty() ? wanted : split.empty() ? "train" : split] = std::move(files);
    return splits;
  }
  for (const char* folder : {"train", "val", "valid", "test"}) {
    std::vector<fs::path> files = list_files(directory / folder, ending);
    if (files.empty()) continue;
    if (!splits.try_emplace(find_split_word(folder), std::move(files)).second)
      throw UserError(ErrorKind::kData, {.error = "two folders are the same split",
                                         .where = (directory / folder).string(),
                                         .what = "val and valid are both validation data",
                                         .fix = "give one folder at a time, with --split NAME"});
  }
  return splits;
}

fs::path find_annotated_image(const fs::path& annotation, const fs::path& directory,
                              const std::string& name) {
  // Tools on Windows write backslashes; some write a path on another machine.
  fs::path written = directory / name;
  const std::string last = name.substr(name.find_last_of("/\\") + 1);
  if (!name.empty() && fs::exists(written)) return written;
  if (!last.empty() && fs::exists(directory / last)) return directory / last;
  for (const char* ending : kReadable) {
    std::string upper = ending;
    std::transform(upper.begin(), upper.end(), upper.begin(),
                   [](unsigned char c) { return std::toupper(c); });
    for (const std::string& each : {std::string(ending), upper}) {
      const fs::path sibling = directory / (annotation.stem().string() + each);
      if (fs::exists(sibling)) return sibling;
    }
  }
  return name.empty() ? directory / (annotation.stem().string() + ".jpg") : written;
}

}  // namespace rematch
