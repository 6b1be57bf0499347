#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <sstream>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "import/foreign.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr const char* kUnlabelled = "images without a label file, taken as empty scenes";
constexpr double kFarOutside = 2;  // in sides: such a coordinate is no share
constexpr const char* kYamlFix =
    "give the data set's YAML: path, train and val are texts, names is a list or {0: cat, 1: dog, "
    "…}";

[[noreturn]] void refuse_yolo(const std::string& where, const std::string& what,
                              const std::string& fix) {
  throw UserError(
      ErrorKind::kData,
      {.error = "this YOLO data set cannot be read", .where = where, .what = what, .fix = fix});
}

std::map<int, std::string> names_of(const YAML::Node& names, const std::string& path) {
  std::map<int, std::string> result;
  if (names.IsSequence()) {
    for (size_t i = 0; i < names.size(); ++i)
      result[static_cast<int>(i)] = names[i].as<std::string>();
  } else if (names.IsMap()) {
    for (const auto& item : names) result[item.first.as<int>()] = item.second.as<std::string>();
  } else {
    refuse_yolo(path, "it has no \"names\"", "add names: {0: cat, 1: dog, …}");
  }
  return result;
}

bool is_image(const fs::path& path) {
  std::string ending = path.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  // What cannot be read here counts as well, so that it is told.
  for (const char* known : {".jpg", ".jpeg", ".png", ".webp", ".bmp", ".tif", ".tiff", ".dng",
                            ".mpo", ".pfm", ".heic", ".avif", ".gif"}) {
    if (ending == known) return true;
  }
  return false;
}

/// Images of a split: all below a directory, or those that a text file lists.
std::vector<fs::path> images_of(const fs::path& root, const fs::path& entry) {
  const fs::path path = entry.is_absolute() ? entry : root / entry;
  std::vector<fs::path> images;
  if (fs::is_directory(path)) {
    for (const auto& file : fs::recursive_directory_iterator(path)) {
      if (file.is_regular_file() && is_image(file.path())) images.push_back(file.path());
    }
  } else if (fs::is_regular_file(path)) {
    for (const std::string& line : split(read_file(path.string()), '\n')) {
      const std::string name = is_valid_utf8(line) ? python_strip(line) : line;
      if (!name.empty())
        images.push_back(fs::path(name).is_absolute() ? fs::path(name) : path.parent_path() / name);
    }
  } else {
    refuse_yolo(path.string(), "neither a directory of images nor a text file that lists them",
                "correct \"path\" and the splits in the YAML");
  }
  std::sort(images.begin(), images.end());
  return images;
}

/// `images` becomes `labels` in the last folder of that name, as Ultralytics looks for them.
fs::path labels_of(const fs::path& image) {
  // a relative path may begin with that folder
  std::string text = "/" + fs::path(image).replace_extension(".txt").string();
  if (const size_t at = text.rfind("/images/"); at != std::string::npos)
    text.replace(at, 8, "/labels/");
  return text.substr(1);
}

ForeignObject object_of(const std::vector<double>& values, bool with_ring) {
  ForeignObject object;
  if (values.size() == 4) {
    object.x0 = values[0] - values[2] / 2;
    object.y0 = values[1] - values[3] / 2;
    object.x1 = values[0] + values[2] / 2;
    object.y1 = values[1] + values[3] / 2;
    return object;
  }
  object.x0 = object.x1 = values[0];
  object.y0 = object.y1 = values[1];
  for (size_t i = 0; i < values.size(); i += 2) {
    object.x0 = std::min(object.x0, values[i]);
    object.x1 = std::max(object.x1, values[i]);
    object.y0 = std::min(object.y0, values[i + 1]);
    object.y1 = std::max(object.y1, values[i + 1]);
    if (with_ring) object.ring.push_back({values[i], values[i + 1]});
  }
  return object;
}

ForeignImage read_image(const fs::path& path, const std::map<int, std::string>& names,
                        bool polygons, ForeignSet& set) {
  ForeignImage image{.path = path.string(), .is_relative = true, .objects = {}};
  const fs::path labels = labels_of(path);
  if (!fs::exists(labels)) {
    ++set.notes[kUnlabelled];
    return image;
  }
  int line_number = 0;
  for (const std::string& line : split(read_file(labels.string()), '\n')) {
    ++line_number;
    std::istringstream words(line);
    double class_id = -1, value = 0;
    if (!(words >> class_id)) continue;
    std::vector<double> values;
    while (words >> value) values.push_back(value);
    const std::string where = fmt::format("{}:{}", labels.string(), line_number);
    const bool is_shape = values.size() == 4 || (values.size() >= 6 && values.size() % 2 == 0);
    if (!words.eof() || !is_shape)
      refuse_yolo(where, line,
                  "write \"class x y width height\" or \"class x1 y1 x2 y2 x3 y3 …\", as shares of "
                  "the sides");
    if (std::any_of(values.begin(), values.end(),
                    [](double share) { return std::abs(share) > kFarOutside; }))
      refuse_yolo(where, line,
                  "these look like pixels: write x, y, width and height as shares (0 … 1) of the "
                  "image's sides");
    const auto name = names.find(
        std::abs(class_id) < std::numeric_limits<int>::max() ? static_cast<int>(class_id) : -1);
    if (name == names.end())
      refuse_yolo(where, fmt::format("class {} has no name", class_id),
                  "add it to \"names\" in the YAML");
    ForeignObject object = object_of(values, polygons);
    object.desc = name->second;
    image.objects.push_back(std::move(object));
  }
  return image;
}

/// All images of a split. One without any label file is an error: its folder of labels was not
/// found.
std::vector<ForeignImage> read_split(const fs::path& root, const std::vector<std::string>& entries,
                                     const std::map<int, std::string>& names, bool polygons,
                                     ForeignSet& set) {
  const int64_t unlabelled_before = set.notes[kUnlabelled];
  std::vector<ForeignImage> images;
  for (const std::string& entry : entries) {
    for (const fs::path& image : images_of(root, entry))
      images.push_back(read_image(image, names, polygons, set));
  }
  const int64_t unlabelled = set.notes[kUnlabelled] - unlabelled_before;
  if (!images.empty() && unlabelled == static_cast<int64_t>(images.size())) {
    refuse_yolo(images.front().path,
                fmt::format("none of {} has a label file; this one's would be {}",
                            counted(unlabelled, "image"), labels_of(images.front().path).string()),
                "put the labels there, or take the split out of the YAML");
  }
  return images;
}

ForeignSet read_yaml(const YAML::Node& yaml, const std::string& yaml_path,
                     const ImportOptions& options) {
  if (!yaml.IsMap()) refuse_yolo(yaml_path, "it is not a mapping", kYamlFix);
  const std::map<int, std::string> names = names_of(yaml["names"], yaml_path);
  fs::path root = yaml["path"] ? fs::path(yaml["path"].as<std::string>()) : fs::path();
  if (!options.images_dir.empty()) root = options.images_dir;
  if (!root.is_absolute() && options.images_dir.empty())
    root = fs::path(yaml_path).parent_path() / root;
  ForeignSet set{.splits = {}, .notes = {}, .sources = {yaml_path}};
  for (const char* name : {"train", "val", "test"}) {
    const YAML::Node split = yaml[name];
    if (!split || split.IsNull()) continue;
    std::vector<std::string> entries;
    if (split.IsSequence()) {
      for (const auto& entry : split) entries.push_back(entry.as<std::string>());
    } else {
      entries.push_back(split.as<std::string>());
    }
    set.splits[name] = read_split(root, entries, names, options.polygons, set);
  }
  if (set.notes[kUnlabelled] == 0) set.notes.erase(kUnlabelled);
  if (set.splits.empty())
    refuse_yolo(yaml_path, "none of train, val and test is set", "add train: images/train");
  return set;
}

}  // namespace

ForeignSet read_yolo_set(const std::string& yaml_path, const ImportOptions& options) {
  try {
    return read_yaml(YAML::Load(read_file(yaml_path)), yaml_path, options);
  } catch (const YAML::Exception& error) {
    refuse_yolo(yaml_path, error.what(), kYamlFix);
  }
}

}  // namespace rematch
