#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <map>
#include <set>

#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/image_files.h"
#include "tools/import/class_names.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"
#include "tools/import/yolo_labels.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kCommand = "from-yolo";
constexpr const char* kYaml[] = {".yaml", ".yml"};
// Label Studio numbers its classes by notes.json, not by classes.txt
constexpr const char* kNamesFiles[] = {
    "notes.json",      "classes.txt",           "obj.names", "labels.txt", "names.txt",
    "_darknet.labels", "predefined_classes.txt"};

/// A data set: its images by split, and the names of its classes.
struct Layout {
  std::string source;  ///< YAML or directory
  NamesById names;
  size_t num_keypoint_values = 0;
  std::map<std::string, std::vector<fs::path>> images = {};
  bool has_lists = false;  ///< of images, which may leave out some
};

/// Finds a path of a YOLO data set. "../train/images" may be next to the YAML, as in exports of
/// Roboflow; a path of another machine is looked for by its last parts.
/// @param other  another folder to look in
/// @param is_image  of a list: its last part is enough; "images" alone may be another split
fs::path resolve(const fs::path& root, const fs::path& other, std::string entry, bool is_image) {
  std::replace(entry.begin(), entry.end(), '\\', '/');
  fs::path written = root / entry;
  while (true) {
    for (const fs::path& path : {root / entry, other / entry}) {
      if (fs::exists(path)) return path;
    }
    const size_t slash = entry.find('/');
    if (slash == entry.npos || (!is_image && entry.find('/', slash + 1) == entry.npos))
      return written;
    entry.erase(0, slash + 1);
  }
}

/// The images of a split: all below a directory, or those of a list, one path a line.
std::vector<fs::path> list_split_images(const fs::path& place, const fs::path& root) {
  if (fs::is_directory(place)) return list_files(place, is_image_name);
  std::vector<fs::path> images;
  for (const std::string& line : read_lines(place.string())) {
    if (is_image_name(line))  // no comment
      images.push_back(resolve(place.parent_path(), root, line, /*is_image=*/true));
  }
  return images;
}

/// Possible label files of an image: as in Ultralytics, the last folder `images` becomes
/// `labels`, in any letter case; else next to it.
std::vector<fs::path> label_files(const fs::path& image) {
  const fs::path beside = fs::path(image).replace_extension(".txt");
  std::string text = "/" + beside.string();  // a relative path may begin with "images/"
  std::vector<fs::path> files;
  if (const size_t at = lower_case(text).rfind("/images/"); at != text.npos) {
    for (const char* folder : {"labels", "Labels"})
      files.emplace_back(text.replace(at + 1, 6, folder).substr(1));
  }
  files.push_back(beside);
  return files;
}

/// Reads the images of a layout and their label files.
class YoloReader {
 public:
  YoloReader(const Layout& layout, const ImportOptions& options, ForeignSet& set)
      : layout_(layout),
        options_(options),
        set_(set),
        labels_(layout.names, layout.num_keypoint_values, options, set.ledger) {}

  void read() {
    const bool is_yaml = !fs::is_directory(layout_.source);
    bool has_labels = false;
    for (const auto& [split, images] : layout_.images) {
      if (is_yaml) has_labels = false;
      for (const fs::path& image : images)
        has_labels = read_image(image, set_.splits[split]) || has_labels;
      if (images.empty() || has_labels || (!is_yaml && split != layout_.images.rbegin()->first))
        continue;
      refuse_source(kCommand, images.front().string(),
                    fmt::format("none of {} has a label file; this image's would be {}",
                                counted(std::ssize(images), "image"),
                                label_files(images.front()).front().string()),
                    "put the labels there, or remove the split from the YAML");
    }
    leave_out_doubtful();
    labels_.check(layout_.source);
    if (!layout_.has_lists) lose_orphans();
  }

 private:
  /// @return true if the image has a label file
  bool read_image(const fs::path& path, std::vector<ForeignImage>& images) {
    const std::string name = path.string();
    ForeignImage& image = images.emplace_back(
        ForeignImage{.name = name, .where = name, .unit = CoordUnit::kShares, .path = name});
    for (const fs::path& labels : label_files(path)) {
      if (!fs::exists(labels)) continue;
      image.stem = labels.string();
      std::set<fs::path>& of_labels = images_of_[labels];
      if (is_readable_image_name(path)) of_labels.insert(path.lexically_normal());
      labels_.read(labels, image);
      return true;
    }
    if (options_.missing_labels_are_empty)
      set_.ledger.note("images without a label file, imported as empty scenes");
    else
      image.leave_out(reason::kNoLabelFile, name);
    return false;
  }

  /// Leaves out images that share their labels: a.txt may belong to a.jpg or to a.png.
  void leave_out_doubtful() {
    for (auto& [split, images] : set_.splits) {
      for (ForeignImage& image : images) {
        if (!image.stem.empty() && images_of_[image.stem].size() > 1)
          image.leave_out(reason::kSharedLabels, image.path + " and another: " + image.stem);
      }
    }
  }

  /// Counts label files next to those that were read for which there is no image.
  void lose_orphans() const {
    std::set<fs::path> folders;
    for (const auto& [labels, images] : images_of_) folders.insert(labels.parent_path());
    for (const fs::path& folder : folders) {
      for (const fs::directory_entry& entry : list_entries(folder.empty() ? "." : folder)) {
        const fs::path path = folder / entry.path().filename();
        if (path.extension() == ".txt" && !images_of_.contains(path) && is_yolo_label_file(path))
          set_.ledger.lose_record("a label file without an image", path.string());
      }
    }
  }

  const Layout& layout_;
  const ImportOptions& options_;
  ForeignSet& set_;
  YoloLabels labels_;
  std::map<fs::path, std::set<fs::path>> images_of_;  ///< by label file
};

Layout read_yaml(const std::string& path, const ImportOptions& options, Ledger& ledger) {
  const YAML::Node yaml = read_yaml_file(path);
  Layout layout{.source = path,
                .names = options.names.empty() ? NamesById(yaml, path) : NamesById(options.names)};
  if (const YAML::Node shape = yaml["kpt_shape"]; shape && !shape.IsNull()) {
    const auto numbers = shape.as<std::vector<size_t>>();
    if (numbers.size() != 2 || numbers[0] < 1 || numbers[0] > 1000 || numbers[1] / 2 != 1)
      refuse_source(kCommand, path, "\"kpt_shape\" is not [points, 2] or [points, 3]",
                    "correct it");
    layout.num_keypoint_values = numbers[0] * numbers[1];
  }
  const fs::path beside = fs::path(path).parent_path();
  std::string root = yaml["path"] ? yaml["path"].as<std::string>() : "";
  std::replace(root.begin(), root.end(), '\\', '/');
  root = options.images_dir.empty() ? (beside / root).string() : options.images_dir;
  for (const std::string name : {"train", "val", "test"}) {
    const YAML::Node split = yaml[name];
    if (!split || split.IsNull()) continue;
    for (const std::string& entry : split.IsSequence() ? split.as<std::vector<std::string>>()
                                                       : std::vector{split.as<std::string>()}) {
      const fs::path place = resolve(root, beside, entry, /*is_image=*/false);
      if (!fs::exists(place) && name == "test") {  // of some exports, which do not need it
        ledger.note("split test, which the YAML lists but does not exist");
        continue;
      }
      if (!fs::exists(place))
        refuse_source(
            kCommand, place.string(),
            "it is neither a directory of images nor a text file of paths",
            "correct \"path\" and the splits in the YAML, or pass the directory of \"path\" "
            "with --images");
      layout.has_lists = layout.has_lists || !fs::is_directory(place);
      std::vector<fs::path>& images = layout.images[name];
      for (fs::path& image : list_split_images(place, root)) images.push_back(std::move(image));
    }
  }
  if (layout.images.empty())
    refuse_source(kCommand, path, "none of train, val and test is set", "add train: images/train");
  return layout;
}

/// The classes.txt (obj.names, …) of a directory without YAML; empty if there is none.
std::string find_names_file(const std::string& root) {
  const std::vector<fs::path> all = list_files(root, [](const fs::path& path) {
    return is_among(path.filename().string(), kNamesFiles) &&
           (path.extension() != ".json" ||
            read_file(path.string()).find("\"categories\"") != std::string::npos);
  });
  std::string found;
  for (const char* name : kNamesFiles) {
    for (const fs::path& path : all) {
      if (lower_case(path.filename().string()) != name) continue;
      if (!found.empty() && NamesById(path.string()) != NamesById(found))
        refuse_source(kCommand, root, fmt::format("{} and {} differ", found, path.string()),
                      "convert the folders one at a time, or name the right file with --names");
      if (found.empty()) found = path.string();
    }
    if (!found.empty()) break;
  }
  return found;
}

/// The layout of a directory without YAML: splits by folders.
/// @throws UserError (data) if a text file in it lists images, which gives the splits
Layout find_layout(const std::string& root, const ImportOptions& options, ForeignSet& set) {
  for (const fs::path& file : list_files(root, [&](const fs::path& path) {
         return path.extension() == ".txt" && options.split.empty();
       })) {
    const std::vector<std::string> lines = read_lines(file.string());
    const auto line = std::find_if_not(lines.begin(), lines.end(), [](const std::string& each) {
      return each.empty() || each.starts_with('#');
    });
    if (line != lines.end() && is_image_name(*line))
      refuse_source(
          kCommand, file.string(), "it lists images, and no YAML says of which split",
          "write data.yaml there: train: train.txt / val: val.txt / names: [cat, dog, …]; or "
          "name one split for all images: --split train");
  }
  const std::string names = options.names.empty() ? find_names_file(root) : options.names;
  if (options.names.empty() && !names.empty()) {
    set.sources.push_back(names);
    set.ledger.note("file of class names found: " + names);
  }
  Layout layout{.source = root, .names = NamesById(names)};
  const fs::path pictures = options.images_dir.empty() ? root : options.images_dir;
  for (fs::path& image : list_files(pictures, is_image_name)) {
    std::string split = options.split.empty() ? find_split_folder(image, pictures) : options.split;
    layout.images[split.empty() ? "train" : split].push_back(std::move(image));
  }
  if (layout.images.empty())
    refuse_source(kCommand, root, "the directory has no YAML, and no images", "");
  return layout;
}

/// The path itself, or the only YAML in that directory; empty if a directory has none.
std::string find_yaml(const std::string& path) {
  if (!fs::is_directory(path) && !is_among(fs::path(path).extension().string(), kYaml))
    refuse_source(kCommand, path, "it is neither a YAML nor a directory",
                  "give the directory of images and labels; --names takes a list of class names");
  if (!fs::is_directory(path)) return path;
  std::string found;
  for (const fs::directory_entry& entry : list_entries(path)) {
    if (!is_among(entry.path().extension().string(), kYaml)) continue;
    if (!found.empty())
      refuse_source(kCommand, path, "the directory has several YAML files",
                    fmt::format("give one of them: {}, {}", found, entry.path().string()));
    found = entry.path().string();
  }
  return found;
}

}  // namespace

ForeignSet read_yolo_set(const std::string& yaml_or_directory, const ImportOptions& options) {
  const std::string yaml = find_yaml(yaml_or_directory);
  ForeignSet set{.assumed_form = BoxForm::kCentre};
  try {
    if (!yaml.empty()) set.sources.push_back(yaml);
    const Layout layout = yaml.empty() ? find_layout(yaml_or_directory, options, set)
                                       : read_yaml(yaml, options, set.ledger);
    set.classes = layout.names.in_order();
    YoloReader(layout, options, set).read();
  } catch (const YAML::Exception& error) {
    refuse_source(
        kCommand, yaml, error.what(),
        "give the data set's YAML: path, train and val are texts, names is a list or {0: cat, "
        "1: dog, …}");
  }
  return set;
}

}  // namespace rematch
