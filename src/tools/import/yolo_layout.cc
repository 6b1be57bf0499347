#include "tools/import/yolo_layout.h"

#include <fmt/core.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "tools/import/class_names.h"
#include "tools/import/directory_format.h"
#include "tools/import/image_files.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

// Label Studio numbers its classes by notes.json, not by classes.txt
constexpr const char* kNamesFiles[] = {
    "notes.json",      "classes.txt",           "obj.names", "labels.txt", "names.txt",
    "_darknet.labels", "predefined_classes.txt"};
constexpr const char* kOtherTexts[] = {"train.txt", "val.txt", "valid.txt", "test.txt",
                                       "notes.txt"};

/// The files below a directory whose names in lower case fit, sorted.
template <typename Fits>
std::vector<fs::path> files_below(const fs::path& root, const Fits& fits) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(root, error), end; !error && entry != end;
       entry.increment(error)) {
    if (fits(lower_case(entry->path().filename().string()))) files.push_back(entry->path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

bool is_label_file_name(const std::string& name) {
  return name.ends_with(".txt") && !is_macos_copy(name) && !name.starts_with("readme") &&
         !is_among(name, kNamesFiles) && !is_among(name, kOtherTexts);
}

/// The folders of a path below the root that are not those of images or annotations.
std::string place_of(const fs::path& file, const fs::path& root) {
  std::string place;
  for (const fs::path& part : file.parent_path().lexically_relative(root)) {
    const std::string name = lower_case(part.string());
    if (!is_among(name, kImageFolders) && !is_among(name, kAnnotationFolders) && name != ".")
      place += name + "/";
  }
  return place;
}

/// True for a file that may name classes; of JSON only one with categories.
bool is_names_file(const fs::path& path) {
  std::error_code error;
  return fs::is_regular_file(path, error) &&
         (path.extension() != ".json" ||
          read_file(path.string()).find("\"categories\"") != std::string::npos);
}

}  // namespace

void refuse_yolo(const std::string& where, const std::string& what, const std::string& fix) {
  throw UserError(
      ErrorKind::kData,
      {.error = "this YOLO data set cannot be read", .where = where, .what = what, .fix = fix});
}

fs::path expected_label_file(const fs::path& image) {
  // a relative path may begin with "images/"
  std::string text = "/" + fs::path(image).replace_extension(".txt").string();
  const std::string lower = lower_case(text);
  if (const size_t at = lower.rfind("/images/"); at != std::string::npos)
    text.replace(at, 8, text[at + 1] == 'I' ? "/Labels/" : "/labels/");
  return text.substr(1);
}

fs::path find_label_file(const fs::path& image) {
  fs::path expected = expected_label_file(image);
  if (fs::exists(expected)) return expected;
  if (std::string lower = expected.string(); lower.find("/Labels/") != lower.npos) {
    lower.replace(lower.rfind("/Labels/"), 8, "/labels/");
    if (fs::exists(lower)) return lower;
  }
  const fs::path sibling = fs::path(image).replace_extension(".txt");
  return fs::exists(sibling) ? sibling : fs::path();
}

std::map<std::string, std::vector<YoloPair>> find_yolo_pairs(const fs::path& root,
                                                             const DarknetLists& lists,
                                                             const ImportOptions& options) {
  const fs::path pictures = options.images_dir.empty() ? root : fs::path(options.images_dir);
  std::unordered_map<std::string, std::vector<fs::path>> labels;
  for (const fs::path& file : files_below(root, is_label_file_name))
    labels[file.stem().string()].push_back(file);
  std::map<std::string, std::vector<YoloPair>> splits;
  int64_t num_labels = 0;
  for (const fs::path& image : list_images(pictures)) {
    YoloPair pair{.image = image, .labels = {}};
    const auto found = labels.find(image.stem().string());
    for (size_t i = 0; found != labels.end() && i < found->second.size(); ++i) {
      const fs::path& file = found->second[i];
      // the same folders but for images/ and labels/, or the only file of this name
      if (place_of(file, root) == place_of(image, pictures) ||
          (found->second.size() == 1 && find_split_folder(file, root).empty()))
        pair.labels = file;
    }
    num_labels += !pair.labels.empty();
    const std::string split = lists.split_of(image, find_split_folder(image, pictures));
    splits[options.split.empty() ? split : options.split].push_back(pair);
  }
  if (num_labels > 0) return splits;
  refuse_yolo(root.string(), "the directory has no YAML, and no label files for its images",
              import_fix(root.string(), "from-yolo",
                         "give the data set's YAML (path, train, val, names), or the directory of "
                         "images/ and labels/; images elsewhere: --images DIR"));
}

std::string find_names_file(const fs::path& root) {
  std::vector<fs::path> places = {root, find_folder(root, kAnnotationFolders)};
  for (const char* split : {"train", "valid", "val"}) {
    if (const fs::path folder = find_folder(root, {&split, 1}); !folder.empty()) {
      places.push_back(folder);
      places.push_back(find_folder(folder, kAnnotationFolders));
    }
  }
  std::string found;
  for (const fs::path& place : places) {
    for (const char* name : kNamesFiles) {
      if (found.empty() && !place.empty() && is_names_file(place / name))
        found = (place / name).string();
    }
  }
  std::vector<fs::path> all =
      files_below(root, [](const std::string& name) { return is_among(name, kNamesFiles); });
  std::erase_if(all, [](const fs::path& path) { return !is_names_file(path); });
  if (found.empty() && !all.empty()) found = all.front().string();
  for (const fs::path& other : all) {
    if (other.filename() == fs::path(found).filename() &&
        read_class_names(other.string()) != read_class_names(found))
      refuse_yolo(root.string(), fmt::format("{} and {} differ", found, other.string()),
                  "convert the folders one at a time, or name the right file with --names");
  }
  return found;
}

}  // namespace rematch
