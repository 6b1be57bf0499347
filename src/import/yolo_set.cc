#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "import/directory_format.h"
#include "import/foreign.h"
#include "import/image_files.h"
#include "import/text_file.h"
#include "import/yolo_labels.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr const char* kUnlabelled = "images without a label file, imported as empty scenes";
constexpr int kMaxKeypoints = 1000;
constexpr const char* kYamlFix =
    "give the data set's YAML: path, train and val are texts, names is a list or {0: cat, 1: dog, "
    "…}";

std::map<int, std::string> read_names(const YAML::Node& names, const std::string& path) {
  std::map<int, std::string> result;
  if (!names) refuse_yolo(path, "it has no \"names\"", "add names: {0: cat, 1: dog, …}");
  if (names.IsSequence()) {
    for (size_t i = 0; i < names.size(); ++i)
      result[static_cast<int>(i)] = names[i].as<std::string>();
  } else if (names.IsMap()) {
    for (const auto& item : names) result[item.first.as<int>()] = item.second.as<std::string>();
  } else {
    refuse_yolo(path, "\"names\" is neither a list nor a mapping",
                "write names: {0: cat, 1: dog, …}");
  }
  return result;
}

/// Resolves a path of the YAML. As in Ultralytics, "../train/images" may be next to the YAML, as in
/// exports of Roboflow.
fs::path resolve_entry(const fs::path& root, const std::string& entry) {
  fs::path path = fs::path(entry).is_absolute() ? fs::path(entry) : root / entry;
  if (!fs::exists(path) && entry.starts_with("../")) {
    if (fs::path inside = root / entry.substr(3); fs::exists(inside)) return inside;
  }
  return path;
}

/// Lists the images of a split: all images below a directory, or the lines of a text file.
std::vector<fs::path> list_split_images(const fs::path& path) {
  if (fs::is_directory(path)) return list_images(path);
  std::vector<fs::path> images;
  for (const std::string& line : read_lines(path.string())) {
    const std::string name = is_valid_utf8(line) ? python_strip(line) : line;
    if (!name.empty())
      images.push_back(fs::path(name).is_absolute() ? fs::path(name) : path.parent_path() / name);
  }
  std::sort(images.begin(), images.end());
  return images;
}

/// The label file of an image. As in Ultralytics, the last folder `images` becomes `labels`.
fs::path label_path(const fs::path& image) {
  // a relative path may begin with "images/"
  std::string text = "/" + fs::path(image).replace_extension(".txt").string();
  if (const size_t at = text.rfind("/images/"); at != std::string::npos)
    text.replace(at, 8, "/labels/");
  return text.substr(1);
}

ForeignImage read_image(const fs::path& path, const YoloLabels& labels, ForeignSet& set) {
  ForeignImage image{.path = path.string(), .is_relative = true, .objects = {}};
  const fs::path label_file = label_path(path);
  if (fs::exists(label_file)) {
    image.objects = read_yolo_labels(label_file, labels, set);
  } else {
    ++set.notes[kUnlabelled];
  }
  return image;
}

/// Reads all images of a split. If none has a label file, the folder of labels is missing: an
/// error.
std::vector<ForeignImage> read_split(const std::vector<fs::path>& places, const YoloLabels& labels,
                                     ForeignSet& set) {
  const int64_t unlabelled_before = set.notes[kUnlabelled];
  std::vector<ForeignImage> images;
  for (const fs::path& place : places) {
    if (!fs::is_directory(place) && !fs::is_regular_file(place))
      refuse_yolo(place.string(), "it is neither a directory of images nor a text file of paths",
                  "correct \"path\" and the splits in the YAML, or pass the directory of \"path\" "
                  "with --images");
    for (const fs::path& image : list_split_images(place))
      images.push_back(read_image(image, labels, set));
  }
  const int64_t unlabelled = set.notes[kUnlabelled] - unlabelled_before;
  if (!images.empty() && unlabelled == static_cast<int64_t>(images.size())) {
    refuse_yolo(images.front().path,
                fmt::format("none of {} has a label file; this image's would be {}",
                            counted(unlabelled, "image"), label_path(images.front().path).string()),
                "put the labels there, or remove the split from the YAML");
  }
  return images;
}

std::vector<std::string> read_texts(const YAML::Node& node) {
  if (!node.IsSequence()) return {node.as<std::string>()};
  std::vector<std::string> texts;
  for (const auto& entry : node) texts.push_back(entry.as<std::string>());
  return texts;
}

/// Number of keypoint values after a box: points times values per point.
size_t keypoint_values(const YAML::Node& shape, const std::string& path) {
  if (!shape || shape.IsNull()) return 0;
  const auto numbers = shape.as<std::vector<int>>();
  const bool is_shape = numbers.size() == 2 && numbers[0] >= 1 && numbers[0] <= kMaxKeypoints &&
                        (numbers[1] == 2 || numbers[1] == 3);
  if (!is_shape) refuse_yolo(path, "\"kpt_shape\" is not [points, 2] or [points, 3]", "correct it");
  return static_cast<size_t>(numbers[0]) * static_cast<size_t>(numbers[1]);
}

ForeignSet read_yaml(const YAML::Node& yaml, const std::string& yaml_path,
                     const ImportOptions& options) {
  if (!yaml.IsMap()) refuse_yolo(yaml_path, "it is not a mapping", kYamlFix);
  const YoloLabels labels{.names = read_names(yaml["names"], yaml_path),
                          .polygons = options.polygons,
                          .num_keypoint_values = keypoint_values(yaml["kpt_shape"], yaml_path)};
  fs::path root = yaml["path"] ? fs::path(yaml["path"].as<std::string>()) : fs::path();
  if (!options.images_dir.empty()) root = options.images_dir;
  if (!root.is_absolute() && options.images_dir.empty())
    root = fs::path(yaml_path).parent_path() / root;
  ForeignSet set{.splits = {}, .notes = {}, .sources = {yaml_path}};
  for (const char* name : {"train", "val", "test"}) {
    const YAML::Node split = yaml[name];
    if (!split || split.IsNull()) continue;
    std::vector<fs::path> places;
    for (const std::string& entry : read_texts(split)) places.push_back(resolve_entry(root, entry));
    // Some exports list a test split that does not exist; training and validation do not need it.
    const bool is_absent = std::none_of(places.begin(), places.end(),
                                        [](const fs::path& place) { return fs::exists(place); });
    if (is_absent && std::string(name) == "test") {
      ++set.notes["left out: the split test, which the YAML lists but does not exist"];
      continue;
    }
    set.splits[name] = read_split(places, labels, set);
  }
  if (set.notes[kUnlabelled] == 0) set.notes.erase(kUnlabelled);
  if (set.splits.empty())
    refuse_yolo(yaml_path, "none of train, val and test is set", "add train: images/train");
  return set;
}

/// Finds the YAML of a data set: the path itself, or the only YAML in that directory.
std::string find_yaml(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  std::vector<std::string> yamls;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".yaml" || ending == ".yml") yamls.push_back(entry.path().string());
  }
  std::sort(yamls.begin(), yamls.end());
  if (yamls.size() == 1) return yamls.front();
  refuse_yolo(
      path, yamls.empty() ? "the directory has no YAML" : "the directory has several YAML files",
      yamls.empty()
          ? import_fix(path, "from-yolo", "give the data set's YAML (path, train, val, names)")
          : "give one of them: " + join(yamls, ", "));
}

}  // namespace

ForeignSet read_yolo_set(const std::string& yaml_or_directory, const ImportOptions& options) {
  const std::string path = find_yaml(yaml_or_directory);
  try {
    return read_yaml(YAML::Load(read_file(path)), path, options);
  } catch (const YAML::Exception& error) {
    refuse_yolo(path, error.what(), kYamlFix);
  }
}

}  // namespace rematch
