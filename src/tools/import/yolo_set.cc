#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <set>

#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/image_files.h"
#include "tools/import/class_names.h"
#include "tools/import/forms.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"
#include "tools/import/text_file.h"
#include "tools/import/yolo_labels.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr const char* kCommand = "from-yolo";
constexpr int kMaxKeypoints = 1000;
constexpr const char* kYamlFix =
    "give the data set's YAML: path, train and val are texts, names is a list or {0: cat, 1: dog, "
    "…}";
// Label Studio numbers its classes by notes.json, not by classes.txt
constexpr const char* kNamesFiles[] = {
    "notes.json",      "classes.txt",           "obj.names", "labels.txt", "names.txt",
    "_darknet.labels", "predefined_classes.txt"};

/// A data set: where its images are, by split, and the names of its classes.
struct Layout {
  std::string source;  ///< YAML or directory
  fs::path root;       ///< of the images
  ClassNames names;
  size_t num_keypoint_values = 0;
  std::map<std::string, std::vector<fs::path>> images;  ///< by split
  bool is_complete = true;                              ///< no list leaves out images on purpose
};

/// Resolves a path of a YOLO data set. As in Ultralytics, "../train/images" may be next to the
/// YAML, as in exports of Roboflow. A path of another machine is looked for by its last parts, and
/// so is every path in a list.
/// @param sibling  another folder to look in
fs::path resolve(const fs::path& root, const fs::path& sibling, std::string entry,
                 bool is_in_list) {
  std::replace(entry.begin(), entry.end(), '\\', '/');
  const fs::path path = root / entry;
  if (fs::exists(path)) return path;
  const bool is_elsewhere =
      is_in_list || entry.starts_with('/') || (entry.size() > 1 && entry[1] == ':');
  std::string rest = entry.starts_with("../") ? entry.substr(3) : entry;
  while (true) {
    const size_t slash = rest.find('/');
    // "images" alone may be another split
    const bool is_enough = !is_elsewhere || is_in_list || slash != rest.npos;
    for (const fs::path& folder : {root, sibling}) {
      if (is_enough && fs::exists(folder / rest)) return folder / rest;
    }
    if (!is_elsewhere || slash == rest.npos) return path;
    rest.erase(0, slash + 1);
  }
}

/// The images of a split: all below a directory, or those of a list, one path a line.
std::vector<fs::path> list_split_images(const fs::path& place, const fs::path& root) {
  if (fs::is_directory(place)) return list_files(place, is_image_name);
  std::vector<fs::path> images;
  for (const std::string& line : read_lines(place.string())) {
    const std::string name = is_valid_utf8(line) ? python_strip(line) : line;
    if (is_image_name(name))  // no comment
      images.push_back(resolve(place.parent_path(), root, name, /*is_in_list=*/true));
  }
  std::sort(images.begin(), images.end());
  return images;
}

/// Expected path of the label file of an image: as in Ultralytics, the last folder `images` becomes
/// `labels`, in any letter case.
fs::path expected_label_file(const fs::path& image) {
  // a relative path may begin with "images/"
  std::string text = "/" + fs::path(image).replace_extension(".txt").string();
  if (const size_t at = lower_case(text).rfind("/images/"); at != text.npos)
    text.replace(at, 8, text[at + 1] == 'I' ? "/Labels/" : "/labels/");
  return text.substr(1);
}

/// The label file of an image, there or next to it; empty without one.
fs::path find_label_file(const fs::path& image) {
  const fs::path expected = expected_label_file(image);
  std::string lower = expected.string();
  if (const size_t at = lower.rfind("/Labels/"); at != lower.npos) lower[at + 1] = 'l';
  for (const fs::path& path :
       {expected, fs::path(lower), fs::path(image).replace_extension(".txt")}) {
    if (fs::exists(path)) return path;
  }
  return {};
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
      const bool is_last = split == layout_.images.rbegin()->first;
      if (!images.empty() && !has_labels && (is_yaml || is_last))
        refuse_source(kCommand, images.front().string(),
                      fmt::format("none of {} has a label file; this image's would be {}",
                                  counted(std::ssize(images), "image"),
                                  expected_label_file(images.front()).string()),
                      "put the labels there, or remove the split from the YAML; of images "
                      "elsewhere give the directory: --images DIR");
    }
    leave_out_doubtful();
    labels_.check(layout_.source);
    if (layout_.is_complete) lose_orphans();
  }

 private:
  /// @return true if the image has a label file
  bool read_image(const fs::path& path, std::vector<ForeignImage>& images) {
    const std::string name = path.string();
    ForeignImage image{.name = name, .where = name, .unit = CoordUnit::kShares, .path = name};
    const fs::path labels = find_label_file(path);
    if (!labels.empty()) {
      image.stem = labels.string();
      std::set<fs::path>& of_labels = images_of_[labels];
      if (is_readable_image_name(path)) of_labels.insert(path.lexically_normal());
      labels_.read(labels, image);
    } else if (options_.missing_labels_are_empty) {
      set_.ledger.note("images without a label file, imported as empty scenes");
    } else {
      image.leave_out(reason::kNoLabelFile, name);
    }
    images.push_back(std::move(image));
    return !labels.empty();
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
    std::set<fs::path> folders, orphans;
    for (const auto& [labels, images] : images_of_) folders.insert(labels.parent_path());
    for (const fs::path& folder : folders) {
      for (const fs::directory_entry& entry : list_entries(folder.empty() ? "." : folder)) {
        const fs::path path = folder / entry.path().filename();
        if (path.extension() == ".txt" && !images_of_.contains(path) && is_yolo_label_file(path))
          orphans.insert(path);
      }
    }
    for (const fs::path& path : orphans)
      set_.ledger.lose_record("a label file without an image", path.string());
  }

  const Layout& layout_;
  const ImportOptions& options_;
  ForeignSet& set_;
  YoloLabels labels_;
  std::map<fs::path, std::set<fs::path>> images_of_;  ///< by label file
};

/// Number of keypoint values after a box: points times values per point.
size_t keypoint_values(const YAML::Node& shape, const std::string& path) {
  if (!shape || shape.IsNull()) return 0;
  const auto numbers = shape.as<std::vector<int>>();
  const bool is_shape = numbers.size() == 2 && numbers[0] >= 1 && numbers[0] <= kMaxKeypoints &&
                        (numbers[1] == 2 || numbers[1] == 3);
  if (!is_shape)
    refuse_source(kCommand, path, "\"kpt_shape\" is not [points, 2] or [points, 3]", "correct it");
  return static_cast<size_t>(numbers[0]) * static_cast<size_t>(numbers[1]);
}

Layout read_yaml(const std::string& path, const ImportOptions& options, Ledger& ledger) {
  const YAML::Node yaml = read_yaml_file(path);
  if (!yaml.IsMap()) refuse_source(kCommand, path, "it is not a mapping", kYamlFix);
  const fs::path beside = fs::path(path).parent_path();
  std::string written = yaml["path"] ? yaml["path"].as<std::string>() : "";
  std::replace(written.begin(), written.end(), '\\', '/');
  Layout layout{
      .source = path,
      .root = options.images_dir.empty() ? beside / written : fs::path(options.images_dir),
      .names = options.names.empty() ? ClassNames(yaml, path) : ClassNames(options.names),
      .num_keypoint_values = keypoint_values(yaml["kpt_shape"], path)};
  for (const std::string name : {"train", "val", "test"}) {
    const YAML::Node split = yaml[name];
    if (!split || split.IsNull()) continue;
    const auto entries = split.IsSequence() ? split.as<std::vector<std::string>>()
                                            : std::vector{split.as<std::string>()};
    std::vector<fs::path> images;
    bool is_absent = true;
    for (const std::string& entry : entries) {
      const fs::path place = resolve(layout.root, beside, entry, /*is_in_list=*/false);
      is_absent = is_absent && !fs::exists(place);
      if (fs::is_regular_file(place)) layout.is_complete = false;
      // Some exports list a test split that does not exist; training and validation do not need it.
      if (!fs::exists(place) && (name != "test" || !is_absent))
        refuse_source(kCommand, place.string(),
                      "it is neither a directory of images nor a text file of paths",
                      "correct \"path\" and the splits in the YAML, or pass the directory of "
                      "\"path\" with --images");
      if (!fs::exists(place)) continue;
      const std::vector<fs::path> more = list_split_images(place, layout.root);
      images.insert(images.end(), more.begin(), more.end());
    }
    if (is_absent)
      ledger.note("split test, which the YAML lists but does not exist");
    else
      layout.images[name] = std::move(images);
  }
  if (layout.images.empty())
    refuse_source(kCommand, path, "none of train, val and test is set", "add train: images/train");
  return layout;
}

/// @throws UserError (data) if a text file in a directory lists images: it gives the splits
void refuse_lists(const std::string& root) {
  for (const fs::path& file :
       list_files(root, [](const fs::path& path) { return path.extension() == ".txt"; })) {
    std::ifstream text(file);
    std::string line;
    std::getline(text, line);
    if (const size_t end = line.find_last_not_of(" \t\r");
        end != line.npos && is_image_name(line.substr(0, end + 1)))
      refuse_source(kCommand, file.string(),
                    "it lists images, and the directory has no YAML that says of which split",
                    "write data.yaml there: train: train.txt / val: val.txt / names: [cat, dog, "
                    "…]; or name one split for all images: --split train");
  }
}

/// The classes.txt (obj.names, …) of a directory without YAML; empty if there is none.
std::string find_names_file(const std::string& root) {
  const std::vector<fs::path> all = list_files(root, [](const fs::path& path) {
    return is_among(path.filename().string(), kNamesFiles) &&
           (path.extension() != ".json" ||
            read_file(path.string()).find("\"categories\"") != std::string::npos);
  });
  for (const char* name : kNamesFiles) {
    std::string found;
    for (const fs::path& path : all) {
      if (lower_case(path.filename().string()) != name) continue;
      if (found.empty()) found = path.string();
      if (ClassNames(path.string()) != ClassNames(found))
        refuse_source(kCommand, root, fmt::format("{} and {} differ", found, path.string()),
                      "convert the folders one at a time, or name the right file with --names");
    }
    if (!found.empty()) return found;
  }
  return "";
}

/// The layout of a directory without YAML: splits by folders.
Layout find_layout(const std::string& root, const ImportOptions& options, ForeignSet& set) {
  if (options.split.empty()) refuse_lists(root);
  const std::string names = options.names.empty() ? find_names_file(root) : options.names;
  if (options.names.empty() && !names.empty()) {
    set.sources.push_back(names);
    set.ledger.note("file of class names found: " + names);
  }
  Layout layout{.source = root,
                .root = options.images_dir.empty() ? root : options.images_dir,
                .names = ClassNames(names)};
  for (fs::path& image : list_files(layout.root, is_image_name)) {
    const std::string named = find_split_folder(image, layout.root);
    layout.images[!options.split.empty() ? options.split
                  : named.empty()        ? "train"
                                         : named]
        .push_back(std::move(image));
  }
  if (layout.images.empty())
    refuse_source(kCommand, root, "the directory has no YAML, and no images");
  return layout;
}

/// Finds the YAML of a data set: the path itself, or the only YAML in that directory; empty if a
/// directory has none.
std::string find_yaml(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  std::vector<std::string> yamls;
  for (const fs::directory_entry& entry : list_entries(path)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".yaml" || ending == ".yml") yamls.push_back(entry.path().string());
  }
  std::sort(yamls.begin(), yamls.end());
  if (yamls.size() > 1)
    refuse_source(kCommand, path, "the directory has several YAML files",
                  "give one of them: " + join(yamls, ", "));
  return yamls.empty() ? "" : yamls.front();
}

}  // namespace

ForeignSet read_yolo_set(const std::string& yaml_or_directory, const ImportOptions& options) {
  const std::string yaml = find_yaml(yaml_or_directory),
                    ending = fs::path(yaml).extension().string();
  if (!yaml.empty() && ending != ".yaml" && ending != ".yml")
    refuse_source(kCommand, yaml, "it is neither a YAML nor a directory",
                  "give the directory of images and labels, with --names FILE for a list of class "
                  "names: `rematch data from-yolo DIR --names FILE`");
  ForeignSet set{.assumed_form = BoxForm::kCentre};
  try {
    if (!yaml.empty()) set.sources.push_back(yaml);
    const Layout layout = yaml.empty() ? find_layout(yaml_or_directory, options, set)
                                       : read_yaml(yaml, options, set.ledger);
    set.classes = layout.names.in_order();
    YoloReader(layout, options, set).read();
  } catch (const YAML::Exception& error) {
    refuse_source(kCommand, yaml, error.what(), kYamlFix);
  }
  return set;
}

}  // namespace rematch
