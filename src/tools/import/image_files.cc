#include "tools/import/image_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/import/foreign.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

const std::vector<const char*> kReadable = {".jpg", ".jpeg", ".png", ".webp"};
constexpr const char* kImageFolders[] = {"images", "jpegimages", "image",   "imgs",
                                         "img",    "photos",     "pictures"};
constexpr const char* kAnnotationFolders[] = {"annotations", "annotation", "annots", "annot",
                                              "labels",      "label",      "xml",    "xmls",
                                              "anno",        "annos",      "bbox",   "txt"};
constexpr const char* kSplitFolders[] = {"train", "val", "valid", "validation", "test"};
constexpr const char* kUnreadable[] = {".bmp", ".tif",  ".tiff", ".dng", ".mpo",
                                       ".pfm", ".heic", ".avif", ".gif"};

std::string lowercase_extension(const fs::path& path) {
  return lower_case(path.extension().string());
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
  return std::count(kReadable.begin(), kReadable.end(), lowercase_extension(path)) > 0;
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

std::map<std::string, std::vector<fs::path>> list_annotations(const fs::path& directory,
                                                              const std::string& ending,
                                                              const std::string& wanted) {
  std::map<std::string, std::vector<fs::path>> splits;
  if (std::vector<fs::path> files = list_files(directory, ending); !files.empty()) {
    for (const char* name : kSplitFolders) {
      const fs::path folder = find_folder(directory, {&name, 1});
      if (folder.empty() || list_files(folder, ending).empty()) continue;
      throw UserError(ErrorKind::kData,
                      {.error = "annotations are both in the directory and in its split folders",
                       .where = directory.string(),
                       .what = fmt::format("{} and files in {}/", files.front().filename().string(),
                                           folder.filename().string()),
                       .fix = "give one folder at a time, with --split NAME"});
    }
    const std::string split = find_split_word(directory.filename().string());
    splits[!wanted.empty() ? wanted : split.empty() ? "train" : split] = std::move(files);
    return splits;
  }
  for (const char* folder : kSplitFolders) {
    const fs::path place = find_folder(directory, {&folder, 1});
    std::vector<fs::path> files =
        place.empty() ? std::vector<fs::path>() : list_files(place, ending);
    if (files.empty()) continue;
    if (!splits.try_emplace(find_split_word(folder), std::move(files)).second)
      throw UserError(ErrorKind::kData, {.error = "two folders are the same split",
                                         .where = place.string(),
                                         .what = "val and valid are both validation data",
                                         .fix = "give one folder at a time, with --split NAME"});
  }
  return splits;
}

const std::vector<const char*>& readable_endings() { return kReadable; }

std::string uppercase_ending(const char* ending) {
  std::string upper = ending;
  std::transform(upper.begin(), upper.end(), upper.begin(),
                 [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

fs::path find_folder(const fs::path& directory, std::span<const char* const> names) {
  std::error_code error;
  std::map<std::string, fs::path> folders;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unreachable;
    if (entry->is_directory(unreachable))
      folders.emplace(lower_case(entry->path().filename().string()), entry->path());
  }
  for (const char* name : names) {
    if (const auto found = folders.find(name); found != folders.end()) return found->second;
  }
  return {};
}

fs::path find_image_folder(const fs::path& directory) {
  return find_folder(directory, kImageFolders);
}

fs::path find_annotation_folder(const fs::path& directory) {
  return find_folder(directory, kAnnotationFolders);
}

bool is_annotation_folder(const std::string& name) {
  const std::string lower = lower_case(name);
  return std::find(std::begin(kAnnotationFolders), std::end(kAnnotationFolders), lower) !=
         std::end(kAnnotationFolders);
}

}  // namespace rematch
