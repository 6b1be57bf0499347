#include <fmt/core.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/import/class_names.h"
#include "tools/import/foreign.h"
#include "tools/import/image_files.h"
#include "tools/import/reasons.h"
#include "tools/import/yolo_labels.h"
#include "tools/import/yolo_layout.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr int64_t kFewestLines = 3;  // fewer prove nothing
constexpr int kMaxKeypoints = 1000;
constexpr const char* kYamlFix =
    "give the data set's YAML: path, train and val are texts, names is a list or {0: cat, 1: dog, "
    "…}";

/// Reads the images of a set and their label files.
class YoloReader {
 public:
  YoloReader(YoloLabels& labels, const ImportOptions& options, ForeignSet& set)
      : labels_(labels), options_(options), set_(set) {}

  void read(const YoloPair& pair, std::vector<ForeignImage>& images) {
    const std::string path = pair.image.string();
    ForeignImage image{.name = path, .where = path, .unit = CoordUnit::kShares, .path = path};
    if (!pair.labels.empty()) {
      std::set<fs::path>& images = images_of_[pair.labels];
      if (is_readable_image_name(pair.image)) images.insert(pair.image.lexically_normal());
      folders_.insert(pair.labels.parent_path());
      labels_.read(pair.labels, image);
    } else if (options_.missing_labels_are_empty) {
      set_.ledger.note("images without a label file, imported as empty scenes");
    } else {
      image.leave_out(reason::kNoLabelFile, image.where);
    }
    images.push_back(std::move(image));
  }

  /// Reads all images of a split. If none has a label file, the folder of labels is missing: an
  /// error.
  void read_split(const std::vector<fs::path>& places, const fs::path& root,
                  std::vector<ForeignImage>& images) {
    bool has_labels = false;
    for (const fs::path& place : places) {
      if (!fs::is_directory(place) && !fs::is_regular_file(place))
        refuse_yolo(
            place.string(), "it is neither a directory of images nor a text file of paths",
            "correct \"path\" and the splits in the YAML, or pass the directory of \"path\" "
            "with --images");
      for (const fs::path& image : list_split_images(place, root)) {
        const fs::path labels = find_label_file(image);
        has_labels = has_labels || !labels.empty();
        read({.image = image, .labels = labels}, images);
      }
    }
    if (images.empty() || has_labels) return;
    refuse_yolo(images.front().name,
                fmt::format("none of {} has a label file; this image's would be {}",
                            counted(std::ssize(images), "image"),
                            expected_label_file(images.front().name).string()),
                "put the labels there, or remove the split from the YAML");
  }

  /// Counts label files next to those that were read for which there is no image.
  void lose_orphans() const {
    std::set<fs::path> orphans;
    for (const fs::path& folder : folders_) {
      for (const auto& entry : fs::directory_iterator(folder)) {
        if (entry.path().extension() == ".txt" && !images_of_.contains(entry.path()) &&
            is_yolo_label_file(entry.path()))
          orphans.insert(entry.path());
      }
    }
    for (const fs::path& path : orphans)
      set_.ledger.lose_record("a label file without an image", path.string());
  }

  /// Leaves out images that share their labels: a.txt may belong to a.jpg or to a.png.
  void leave_out_doubtful() const {
    std::map<std::string, std::string> labels_of;  // by image
    for (const auto& [labels, images] : images_of_) {
      for (const fs::path& image : images) {
        if (images.size() > 1) labels_of[image.string()] = labels.string();
      }
    }
    for (auto& [split, images] : set_.splits) {
      for (ForeignImage& image : images) {
        const auto labels = labels_of.find(fs::path(image.path).lexically_normal().string());
        if (labels != labels_of.end())
          image.leave_out(reason::kSharedLabels, image.path + " and another: " + labels->second);
      }
    }
  }

  /// @throws UserError (data) for labels in pixels, and if no class has a name
  void check_evidence(const std::string& where) const {
    check_form(where);
    const YoloEvidence& evidence = labels_.evidence();
    if (evidence.num_pixels > 0 && 2 * evidence.num_pixels >= evidence.num_lines)
      refuse_yolo(where,
                  fmt::format("{} of {} look like pixels, e.g. {}", evidence.num_pixels,
                              counted(evidence.num_lines, "label line"), evidence.first_pixels),
                  "divide x and width by the image's width, y and height by its height");
    if (labels_.have_names() || evidence.unnamed.empty()) return;
    std::string ids;
    for (const auto& [id, count] : evidence.unnamed)
      ids += fmt::format("{}{} ({})", ids.empty() ? "" : ", ", id, counted(count, "line"));
    refuse_yolo(
        where, "the classes have no names; their ids are " + ids,
        "add --names cat,dog,… or --names FILE with one name a line, or write a YAML: path: "
        ". / train: images/train / val: images/val / names: [cat, dog, …]");
  }

 private:
  /// @throws UserError (data) for lines that are neither boxes nor outlines
  void check_form(const std::string& where) const {
    const YoloEvidence& evidence = labels_.evidence();
    if (const KeypointEvidence& keypoints = evidence.keypoints; keypoints.is_proof())
      refuse_yolo(where,
                  fmt::format("boxes with keypoints, not outlines or turned boxes, in {}, e.g. {}",
                              counted(keypoints.num_lines, "line"), keypoints.first),
                  fmt::format("say it in the data set's YAML: kpt_shape: {}; the boxes are then "
                              "imported without their keypoints",
                              keypoints.shape()));
    if (evidence.num_five >= kFewestLines && 10 * evidence.num_angles > evidence.num_five)
      refuse_yolo(where,
                  fmt::format("the fifth number is not a confidence (0 to 1) in {} of {}, e.g. {}",
                              evidence.num_angles, counted(evidence.num_five, "line"),
                              evidence.first_angle),
                  "if it is the number of a track, remove it; if it is an angle, write the four "
                  "corners in its place: class x1 y1 x2 y2 x3 y3 x4 y4, in shares of the image");
  }

  YoloLabels& labels_;
  const ImportOptions& options_;
  ForeignSet& set_;
  std::map<fs::path, std::set<fs::path>> images_of_;  ///< by label file
  std::set<fs::path> folders_;                        ///< of labels
};

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

std::vector<std::string> names_in_order(const std::map<std::string, std::string>& names) {
  std::map<int, std::string> by_id;
  for (const auto& [id, name] : names) by_id[std::atoi(id.c_str())] = name;
  std::vector<std::string> result;
  for (const auto& [id, name] : by_id) result.push_back(name);
  return result;
}

ForeignSet read_yaml(const YAML::Node& yaml, const std::string& yaml_path,
                     const ImportOptions& options) {
  if (!yaml.IsMap()) refuse_yolo(yaml_path, "it is not a mapping", kYamlFix);
  std::map<std::string, std::string> names = read_class_names(options.names);
  const size_t num_keypoint_values = keypoint_values(yaml["kpt_shape"], yaml_path);
  if (names.empty()) names = read_yaml_names(yaml, yaml_path);
  const fs::path beside = fs::path(yaml_path).parent_path();
  std::string written = yaml["path"] ? yaml["path"].as<std::string>() : "";
  std::replace(written.begin(), written.end(), '\\', '/');
  const fs::path root =
      options.images_dir.empty() ? beside / written : fs::path(options.images_dir);
  ForeignSet set{
      .sources = {yaml_path}, .classes = names_in_order(names), .assumed_form = BoxForm::kCentre};
  YoloLabels labels(names, num_keypoint_values, options, set.ledger);
  YoloReader reader(labels, options, set);
  bool lists_files = false;  // which may leave out some
  for (const char* name : {"train", "val", "test"}) {
    const YAML::Node split = yaml[name];
    if (!split || split.IsNull()) continue;
    std::vector<fs::path> places;
    for (const std::string& entry : read_texts(split))
      places.push_back(resolve_yolo_path(root, beside, entry, /*is_image=*/false));
    // Some exports list a test split that does not exist; training and validation do not need it.
    const bool is_absent = std::none_of(places.begin(), places.end(),
                                        [](const fs::path& place) { return fs::exists(place); });
    if (is_absent && std::string(name) == "test") {
      set.ledger.note("split test, which the YAML lists but does not exist");
      continue;
    }
    for (const fs::path& place : places) lists_files = lists_files || fs::is_regular_file(place);
    reader.read_split(places, root, set.splits[name]);
  }
  if (set.splits.empty())
    refuse_yolo(yaml_path, "none of train, val and test is set", "add train: images/train");
  reader.leave_out_doubtful();
  reader.check_evidence(yaml_path);
  if (!lists_files) reader.lose_orphans();
  return set;
}

/// Reads a directory without YAML.
ForeignSet read_pairs(const std::string& root, const ImportOptions& options) {
  const std::string found = options.names.empty() ? find_names_file(root) : "";
  const std::map<std::string, std::string> names =
      read_class_names(found.empty() ? options.names : found);
  ForeignSet set{.classes = names_in_order(names), .assumed_form = BoxForm::kCentre};
  if (!found.empty()) {
    set.sources.push_back(found);
    set.ledger.note(fmt::format("file of class names found: {}", found));
  }
  YoloLabels labels(names, /*num_keypoint_values=*/0, options, set.ledger);
  YoloReader reader(labels, options, set);
  const fs::path pictures = options.images_dir.empty() ? root : options.images_dir;
  const DarknetLists lists =
      options.split.empty() ? DarknetLists(root, pictures, set.ledger) : DarknetLists();
  bool has_unlisted = false;
  for (const auto& [split, pairs] : find_yolo_pairs(root, lists, options)) {
    has_unlisted = has_unlisted || split == DarknetLists::kUnlisted;
    for (const YoloPair& pair : pairs) {
      if (split == DarknetLists::kUnlisted)
        set.ledger.lose_record("an image that no list names (train.txt, …)", pair.image.string());
      else
        reader.read(pair, set.splits[split]);
    }
  }
  if (set.splits.empty())
    refuse_yolo(root, "its lists (train.txt, …) name none of its images",
                "correct their paths, or move the lists away");
  reader.leave_out_doubtful();
  reader.check_evidence(root);
  if (!has_unlisted) reader.lose_orphans();
  return set;
}

/// Finds the YAML of a data set: the path itself, or the only YAML in that directory; empty if a
/// directory has none.
std::string find_yaml(const std::string& path) {
  if (!fs::is_directory(path)) return path;
  std::vector<std::string> yamls;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string ending = entry.path().extension().string();
    if (ending == ".yaml" || ending == ".yml") yamls.push_back(entry.path().string());
  }
  std::sort(yamls.begin(), yamls.end());
  if (yamls.size() <= 1) return yamls.empty() ? "" : yamls.front();
  refuse_yolo(path, "the directory has several YAML files",
              "give one of them: " + join(yamls, ", "));
}

}  // namespace

ForeignSet read_yolo_set(const std::string& yaml_or_directory, const ImportOptions& options) {
  const std::string ending = fs::path(yaml_or_directory).extension().string();
  if (ending == ".txt" || ending == ".names" || ending == ".data")
    refuse_yolo(yaml_or_directory, "it is a list of class names, of images or of other files",
                "give the directory of images and labels, with --names FILE for the list of class "
                "names: `rematch data from-yolo DIR --names FILE`");
  const std::string path = find_yaml(yaml_or_directory);
  if (path.empty()) return read_pairs(yaml_or_directory, options);
  try {
    return read_yaml(YAML::Load(read_file(path)), path, options);
  } catch (const YAML::Exception& error) {
    refuse_yolo(path, error.what(), kYamlFix);
  }
}

}  // namespace rematch
