#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/file.h"
#include "base/json_fields.h"
#include "tools/import/directory_format.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr DirectoryFormat kDirectory = {
    .command = "from-coco",
    .ending = ".json",
    .error = "this is not a directory of COCO annotations",
    .what = "there are no JSON files in it or in folders train, valid and test",
    .fix = "give the JSON files (instances_….json)"};

/// Reads one COCO file into a split.
class CocoReader {
 public:
  CocoReader(const std::string& path, const ImportOptions& options, ForeignSet& set)
      : path_(path),
        options_(options),
        set_(set),
        images_(set.splits[options.split_name(path)]),
        first_(images_.size()) {}

  void read(const Json& document) {
    read_categories(*find_member(document, "categories"));
    read_images(*find_member(document, "images"));
    const Json& annotations = *find_member(document, "annotations");
    for (size_t i = 0; i < annotations.size(); ++i) read_annotation(annotations[i], i);
    lose_doubtful_images();
    add_classes();
  }

 private:
  std::string place(const char* list, size_t index) const {
    return fmt::format("{}: {}[{}]", path_, list, index);
  }

  void read_categories(const Json& categories) {
    for (const Json& category : categories) {
      const std::optional<std::string> id = read_id(find_member(category, "id"));
      const std::string name = text_member(category, {"name"});
      if (!id || name.empty()) continue;
      const auto [known, is_new] = names_.try_emplace(*id, name);
      if (!is_new && known->second != name) known->second = "";
      in_order_.push_back(name);
      const std::string group = text_member(category, {"supercategory"});
      if (group != name && !group.empty()) group_of_[name] = group;
    }
  }

  /// The classes of the file. A category without objects that is the group of another, such as the
  /// root that Roboflow adds, is none; of a group that has objects no image surely shows nothing.
  void add_classes() {
    std::set<std::string> used, groups;
    for (const auto& [name, group] : group_of_) groups.insert(group);
    for (size_t i = first_; i < images_.size(); ++i) {
      std::set<std::string> around;
      for (const ForeignObject& object : images_[i].objects) {
        used.insert(object.desc);
        if (const auto group = group_of_.find(object.desc); group != group_of_.end())
          around.insert(group->second);
      }
      images_[i].doubtful.insert(images_[i].doubtful.end(), around.begin(), around.end());
    }
    std::vector<std::string>& classes = set_.classes;
    for (const std::string& name : in_order_) {
      const bool is_class = used.contains(name) || !groups.contains(name);
      if (is_class && std::find(classes.begin(), classes.end(), name) == classes.end())
        classes.push_back(name);
    }
  }

  /// LVIS has only the address of a file.
  static std::string file_name(const Json& image) {
    const std::string name = text_member(image, {"file_name", "filename", "path"});
    return name.empty() ? text_member(image, {"coco_url", "flickr_url"}) : name;
  }

  void read_images(const Json& listed) {
    for (size_t i = 0; i < listed.size(); ++i) {
      const Json& entry = listed[i];
      const std::optional<std::string> id = read_id(find_member(entry, "id"));
      ForeignImage image = image_of_record(entry, file_name(entry), path_, place("images", i));
      if (!id || image.name.empty()) {
        set_.ledger.lose_record("an image without an id or a file name", image.where);
        continue;
      }
      const auto [known, is_new] = by_id_.try_emplace(*id, images_.size());
      if (!is_new) {
        image.leave_out(reason::kSharedId, image.where);
        images_[known->second].leave_out(reason::kSharedId, image.where);
      }
      read_lvis(entry, image);
      images_.push_back(std::move(image));
    }
  }

  /// LVIS annotates some classes of each image, and says which others it does not show.
  void read_lvis(const Json& entry, ForeignImage& image) {
    const auto names = [&](const Json* ids) {
      std::vector<std::string> found;
      for (const Json& id : *ids) {
        if (const auto name = names_.find(read_id(&id).value_or("")); name != names_.end())
          found.push_back(name->second);
      }
      return found;
    };
    if (const Json* missing = find_member(entry, "not_exhaustive_category_ids");
        is_filled_list(missing)) {
      image.doubtful = names(missing);
      set_.ledger.note("images of which LVIS says that some objects are not annotated");
    }
    const Json* absent = find_member(entry, "neg_category_ids");
    if (absent != nullptr && absent->is_array()) image.absent = names(absent);
  }

  void read_annotation(const Json& annotation, size_t index) {
    const std::optional<std::string> image_id = read_id(find_member(annotation, "image_id"));
    const auto found = image_id ? by_id_.find(*image_id) : by_id_.end();
    if (found == by_id_.end()) {
      set_.ledger.lose_record("an annotation whose image is not listed",
                              place("annotations", index));
      has_orphans_ = true;
      return;
    }
    ForeignImage& image = images_[found->second];
    const std::optional<std::string> id = read_id(find_member(annotation, "category_id"));
    const auto name = id ? names_.find(*id) : names_.end();
    if (is_crowd(annotation))
      return image.skip_crowd(name == names_.end() ? "" : name->second, set_.ledger);
    const auto lose = [&](const char* reason) { image.lose(reason, place("annotations", index)); };
    ForeignObject object;
    if (const char* reason = read_geometry(annotation, object)) return lose(reason);
    if (name != names_.end()) {
      object.desc = name->second;
      if (object.desc.empty()) return lose("an object whose category id has two names");
    } else if (id || options_.label.empty()) {
      return lose(reason::kUnknownClass);
    }
    image.objects.push_back(std::move(object));
  }

  /// CVAT, whose annotations have an attribute "occluded", marks each mask as a crowd.
  bool is_crowd(const Json& annotation) {
    if (!is_set(find_member(annotation, "iscrowd"))) return false;
    const Json* attributes = find_member(annotation, "attributes");
    if (attributes == nullptr || find_member(*attributes, "occluded") == nullptr) return true;
    set_.ledger.note("masks of CVAT, which it marks as crowds, imported as objects");
    return false;
  }

  /// Meaning of the four numbers of an annotation: detectron2's bbox_mode, 0 for corners and 1 for
  /// x, y, width, height; nullopt for its other modes.
  std::optional<BoxForm> form_of(const Json& annotation) const {
    if (options_.boxes) return options_.boxes;
    const Json* mode = find_member(annotation, "bbox_mode");
    if (mode == nullptr || mode->is_null() || *mode == 1) return BoxForm::kSides;
    if (*mode == 0) return BoxForm::kCorners;
    return std::nullopt;
  }

  static bool is_filled_list(const Json* value) {
    return value != nullptr && value->is_array() && !value->empty();
  }

  static double rotation(const Json& annotation) {
    const Json* attributes = find_member(annotation, "attributes");
    const Json* value = attributes != nullptr ? find_member(*attributes, "rotation") : nullptr;
    return value != nullptr ? read_number(*value).value_or(0) : 0;
  }

  /// Reads box and outline.
  /// @return the reason why there is none, or nullptr
  const char* read_geometry(const Json& annotation, ForeignObject& object) {
    const Json* segmentation = find_member(annotation, "segmentation");
    const Json* box = find_member(annotation, "bbox");
    if (box == nullptr || (box->is_array() && box->empty())) {
      Outline points;
      const bool has_rings = segmentation != nullptr && segmentation->is_array();
      const bool is_flat = has_rings && !segmentation->empty() && (*segmentation)[0].is_number();
      if (is_flat) points = read_points(*segmentation);  // VGG Image Annotator
      for (size_t i = 0; has_rings && !is_flat && i < segmentation->size(); ++i) {
        const Outline ring = read_points((*segmentation)[i]);
        points.insert(points.end(), ring.begin(), ring.end());
      }
      if (points.size() < 3)
        return segmentation != nullptr && segmentation->is_object()   ? reason::kMaskOnly
               : is_filled_list(find_member(annotation, "keypoints")) ? reason::kKeypointsOnly
                                                                      : reason::kNoBox;
      object = box_around(points);
      set_.ledger.note("boxes around outlines, of annotations without a box");
    } else {
      const std::optional<std::array<double, 4>> numbers = read_four(*box);
      if (!numbers)
        return box->is_array() && box->size() == 5 ? reason::kFiveNumbers : reason::kNoBox;
      const std::optional<BoxForm> form = form_of(annotation);
      if (!form) return "a box of a bbox_mode other than 0 (corners) and 1 (x, y, width, height)";
      object = make_box(*numbers, *form);
      if (find_bad_corner(object) != nullptr) return find_bad_corner(object);
      if (const double degrees = rotation(annotation); degrees != 0) {
        object = rotate_box(object, degrees, options_.polygons, set_.ledger);
        return nullptr;
      }
    }
    if (options_.polygons && segmentation != nullptr) add_outline(*segmentation, object);
    return nullptr;
  }

  void add_outline(const Json& segmentation, ForeignObject& object) {
    if (segmentation.empty()) return;
    if (segmentation.is_object()) return set_.ledger.note("masks replaced by their boxes");
    Outline ring;
    if (segmentation.is_array() && (segmentation.size() == 1 || segmentation[0].is_number()))
      ring = read_points(segmentation.size() == 1 ? segmentation[0] : segmentation);
    if (ring.size() < 3)
      return set_.ledger.note("outlines of several rings replaced by their boxes");
    object.ring = std::move(ring);
  }

  /// An image without annotations may be the one that an annotation without an image means.
  void lose_doubtful_images() {
    for (size_t i = first_; has_orphans_ && i < images_.size(); ++i) {
      ForeignImage& image = images_[i];
      if (image.objects.empty() && image.lost.empty() && !image.has_crowds)
        image.leave_out(reason::kMaybeNotEmpty, image.where);
    }
  }

  const std::string& path_;
  const ImportOptions& options_;
  ForeignSet& set_;
  std::vector<ForeignImage>& images_;
  size_t first_;                                        // image of this file
  std::unordered_map<std::string, std::string> names_;  // empty: two names
  std::vector<std::string> in_order_;                   // names of categories
  std::map<std::string, std::string> group_of_;         // supercategory by name
  std::unordered_map<std::string, size_t> by_id_;
  bool has_orphans_ = false;  // an annotation names no listed image
};

void read_coco_file(const std::string& path, const ImportOptions& options, ForeignSet& set) {
  const JsonOrigin origin{.path = path,
                          .error = "this is not a COCO annotation file",
                          .fix =
                              "give the JSON with \"images\", \"annotations\" and "
                              "\"categories\" (instances_….json)"};
  const std::string text = read_file(path);
  const bool has_lists = text.find("\"images\"") != text.npos &&
                         text.find("\"annotations\"") != text.npos &&
                         text.find("\"categories\"") != text.npos;
  if (!has_lists) refuse_other_format(path, text, kDirectory.command, origin.error);
  const Json document = parse_document(without_nan(text), origin);
  JsonFields fields(document, origin);
  for (const char* list : {"categories", "images", "annotations"}) fields.list(list);
  // panoptic files and captions have the same lists, and other annotations
  if (const Json& annotations = document["annotations"]; !annotations.empty())
    refuse_other_format(path,
                        R"({"images": [], "annotations": [)" +
                            annotations[0].dump(-1, ' ', false, Json::error_handler_t::replace),
                        kDirectory.command, origin.error);
  CocoReader(path, options, set).read(document);
}

}  // namespace

ForeignSet read_coco_files(const std::vector<std::string>& sources, const ImportOptions& options) {
  ForeignSet set{.sources = find_split_files(sources, kDirectory, options),
                 .assumed_form = BoxForm::kSides};
  for (const std::string& path : set.sources) read_coco_file(path, options, set);
  return set;
}

}  // namespace rematch
