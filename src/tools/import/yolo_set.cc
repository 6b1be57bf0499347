#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "tools/import/image_files.h"
#include "tools/import/yolo_parts.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr SourceForm kForm = {.command = "from-yolo", .ending = ".txt"};

/// Possible label files of an image: as in Ultralytics, the last folder `images` becomes
/// `labels`, in any letter case; else next to it.
Paths label_files(const fs::path& image) {
  const fs::path beside = fs::path(image).replace_extension(".txt");
  std::string text = "/" + beside.string();  // a relative path may begin with "images/"
  Paths files;
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
  explicit YoloReader(const YoloLayout& layout) : layout_(layout) {}

  void read(const std::string& path, ForeignSet& set, ForeignImages& images) {
    ForeignImage& image = images.emplace_back(
        ForeignImage{.name = path, .where = path, .unit = CoordUnit::kShares, .path = path});
    for (const fs::path& each : label_files(path)) {
      const fs::path labels = each.lexically_normal();
      if (!fs::exists(labels)) continue;  // throws where that cannot be seen: it may be there
      image.stem = labels;
      folders_.insert(labels.parent_path());
      std::set<fs::path>& of_labels = images_of_[labels];
      if (is_readable_image_name(path)) of_labels.insert(fs::path(path).lexically_normal());
      return labels_.read(labels, image, set);
    }
    if (set.options.missing_labels_are_empty)
      set.ledger.note("images without a label file, imported as empty scenes");
    else
      image.leave_out(reason::kNoLabelFile, path);
  }

  /// Compares what was read.
  void check(ForeignSet& set) const {
    for (auto& [split, images] : set.splits) check_images(images);
    labels_.check();
    if (layout_.is_yaml && set.options.names.empty()) check_class_lists(set.names);
    if (!layout_.has_lists) check_other_texts(set);
  }

 private:
  /// Leaves out images that share their labels: a.txt may belong to a.jpg or to a.png.
  /// @throws UserError (data) for images none of which has a label file
  void check_images(ForeignImages& images) const {
    bool has_labels = images.empty();
    for (ForeignImage& image : images) {
      if (image.stem.empty()) continue;
      has_labels = true;
      if (images_of_.at(image.stem).size() > 1)
        image.leave_out(reason::kSharedLabels, image.path + " and another: " + image.stem);
    }
    if (!has_labels)
      refuse_yolo(images.front().path,
                  fmt::format("none of {} has a label file; this image's would be {}",
                              counted(std::ssize(images), "image"),
                              label_files(images.front().path).front().string()),
                  "put the labels there, or remove the split");
  }

  /// A classes.txt is of the program that wrote the labels.
  /// @throws UserError (data) if one next to labels or YAML names other classes than the YAML
  void check_class_lists(const NamesById& names) const {
    std::set<fs::path> folders = folders_;
    folders.insert(fs::path(layout_.source).parent_path());
    for (const fs::path& folder : folders) {
      const std::string list = folder / "classes.txt";
      if (is_file(list) && NamesById(list) != names)
        refuse_yolo(list, "its names are not those of the YAML",
                    "remove the wrong one or name the right one: --names " + shell_word(list));
    }
  }

  /// Counts label files next to those that were read for which there is no image.
  /// @throws UserError (data) for a list of images in a directory without YAML: it says a split
  void check_other_texts(ForeignSet& set) const {
    std::set<fs::path> texts;
    for (const fs::path& folder : layout_.is_yaml ? folders_ : std::set<fs::path>{layout_.source}) {
      for (const fs::path& path :
           list_files(folder.empty() ? "." : folder,
                      [](const fs::path& path) { return path.extension() == ".txt"; }))
        texts.insert(path.lexically_normal());
    }
    for (const fs::path& path : texts) {
      if (images_of_.contains(path)) continue;
      const Strings lines = read_lines(path);
      const auto first = std::ranges::find_if_not(
          lines, [](const std::string& line) { return line.empty() || line.starts_with('#'); });
      if (first == lines.end()) continue;
      if (!layout_.is_yaml && set.options.split.empty() && is_image_name(*first))
        refuse_yolo(path, "it lists images, and no YAML says of which split",
                    "write data.yaml there: train: train.txt / val: val.txt / names: [cat, dog, "
                    "…]; or name one split for all images: --split train");
      if (folders_.contains(path.parent_path()) && is_yolo_label(*first))
        set.ledger.lose_record("a label file without an image", path);
    }
  }

  const YoloLayout& layout_;
  YoloLabels labels_;
  std::map<fs::path, std::set<fs::path>> images_of_;  ///< by label file
  std::set<fs::path> folders_;                        ///< of label files
};

}  // namespace

ForeignSet read_yolo_set(const Strings& yaml_or_directory, const ImportOptions& options) {
  ForeignSet set{.assumed_form = BoxForm::kCentre, .options = options};
  const YoloLayout layout = read_yolo_layout(yaml_or_directory.front(), set);
  YoloReader reader(layout);
  const auto read = [&](const auto& path, auto& set, auto& images) {
    reader.read(path, set, images);
  };
  set = read_sources({}, kForm, std::move(set), read, layout.images);
  reader.check(set);
  return set;
}

}  // namespace rematch
