#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <unordered_map>

#include "base/file.h"
#include "base/json_fields.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kCommand = "from-coco";
constexpr const char* kLists[] = {"categories", "images", "annotations"};

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
    for (const Json& category : document["categories"]) read_category(category);
    const Json &images = document["images"], &annotations = document["annotations"];
    for (size_t i = 0; i < images.size(); ++i) read_image(images[i], place("images", i));
    for (size_t i = 0; i < annotations.size(); ++i)
      read_annotation(annotations[i], place("annotations", i));
    // an image without annotations may be the one that an annotation without an image means
    for (size_t i = first_; has_orphans_ && i < images_.size(); ++i) {
      ForeignImage& image = images_[i];
      if (image.objects.empty() && image.lost.empty() && !image.has_crowds)
        image.leave_out(reason::kMaybeNotEmpty, image.where);
    }
    add_classes();
  }

 private:
  std::string place(const char* list, size_t index) const {
    return fmt::format("{}: {}[{}]", path_, list, index);
  }

  void read_category(const Json& category) {
    const std::optional<std::string> id = read_id(find_member(category, "id"));
    const std::string name = text_member(category, {"name"}),
                      group = text_member(category, {"supercategory"});
    if (!id || name.empty()) return;
    const auto [known, is_new] = names_.try_emplace(*id, name);
    if (!is_new && known->second != name) known->second = "";
    in_order_.push_back(name);
    if (group != name && !group.empty()) group_of_[name] = group;
  }

  void read_image(const Json& entry, const std::string& where) {
    const std::optional<std::string> id = read_id(find_member(entry, "id"));
    std::string name = text_member(entry, {"file_name", "filename", "path"});
    if (name.empty()) name = text_member(entry, {"coco_url", "flickr_url"});  // LVIS
    ForeignImage image = image_of_record(entry, name, path_, where);
    if (!id || name.empty())
      return set_.ledger.lose_record("an image without an id or a file name", where);
    const auto [known, is_new] = by_id_.try_emplace(*id, images_.size());
    if (!is_new) {
      image.leave_out(reason::kSharedId, where);
      images_[known->second].leave_out(reason::kSharedId, where);
    }
    // LVIS annotates some classes of each image only
    image.is_partial =
        find_member(entry, {"neg_category_ids", "not_exhaustive_category_ids"}) != nullptr;
    images_.push_back(std::move(image));
  }

  void read_annotation(const Json& annotation, const std::string& where) {
    const auto found = by_id_.find(read_id(find_member(annotation, "image_id")).value_or(""));
    if (found == by_id_.end()) {
      has_orphans_ = true;
      return set_.ledger.lose_record("an annotation whose image is not listed", where);
    }
    ForeignImage& image = images_[found->second];
    const std::optional<std::string> id = read_id(find_member(annotation, "category_id"));
    const auto name = names_.find(id.value_or(""));
    if (const char* skipped = skip_note(annotation); skipped != nullptr && !is_mask(annotation))
      return image.skip_crowd(name == names_.end() ? "" : name->second, set_.ledger, skipped);
    ForeignObject object;
    const char* reason = read_geometry(annotation, object);
    if (reason == nullptr && name == names_.end() && (id || options_.label.empty()))
      reason = reason::kUnknownClass;
    if (name != names_.end()) object.desc = name->second;
    if (reason == nullptr && name != names_.end() && object.desc.empty())
      reason = "an object whose category id has two names";
    if (reason != nullptr) return image.lose(reason, where);
    used_.insert(object.desc);
    // an image that shows a member of a group ("animal") shows the group
    if (const auto group = group_of_.find(object.desc); group != group_of_.end())
      image.doubtful.push_back(group->second);
    image.objects.push_back(std::move(object));
  }

  /// CVAT, whose annotations have an attribute "occluded", marks each mask as a crowd.
  bool is_mask(const Json& annotation) {
    const Json* attributes = find_member(annotation, "attributes");
    if (attributes == nullptr || find_member(*attributes, "occluded") == nullptr ||
        is_set(find_member(annotation, "ignore")))
      return false;
    set_.ledger.note("masks of CVAT, which it marks as crowds, imported as objects");
    return true;
  }

  /// The rings of an outline: one flat list (VGG Image Annotator), or several.
  static std::vector<Outline> rings_of(const Json* segmentation) {
    if (segmentation == nullptr || !segmentation->is_array() || segmentation->empty()) return {};
    if ((*segmentation)[0].is_number()) return {read_points(*segmentation)};
    std::vector<Outline> rings;
    for (const Json& ring : *segmentation) rings.push_back(read_points(ring));
    return rings;
  }

  /// Reads box and outline.
  /// @return the reason why there is none, or nullptr
  const char* read_geometry(const Json& annotation, ForeignObject& object) {
    const Json *segmentation = find_member(annotation, "segmentation"),
               *box = find_member(annotation, "bbox");
    const std::vector<Outline> rings = rings_of(segmentation);
    if (box == nullptr || (box->is_array() && box->empty())) {
      Outline points;
      for (const Outline& ring : rings) {
        if (ring.empty()) return reason::kNoBox;
        points.insert(points.end(), ring.begin(), ring.end());
      }
      const bool is_mask = segmentation != nullptr && segmentation->is_object(),
                 has_points = find_member(annotation, "keypoints") != nullptr;
      if (points.size() < 3)
        return is_mask ? reason::kMaskOnly : has_points ? reason::kKeypointsOnly : reason::kNoBox;
      object = box_around(points);
      set_.ledger.note("boxes around outlines, of annotations without a box");
    } else {
      const std::optional<std::array<double, 4>> numbers = read_four(*box);
      const double mode = number_member(annotation, "bbox_mode").value_or(1);  // detectron2
      if (!numbers) return box->size() == 5 ? reason::kFiveNumbers : reason::kNoBox;
      if (mode != 0 && mode != 1)
        return "a box of a bbox_mode other than 0 (corners) and 1 (x, y, width, height)";
      object = make_box(*numbers,
                        options_.boxes.value_or(mode == 0 ? BoxForm::kCorners : BoxForm::kSides));
      if (object.x1 < object.x0 || object.y1 < object.y0) return reason::kSwapped;
      const Json* attributes = find_member(annotation, "attributes");  // CVAT
      if (attributes != nullptr && number_member(*attributes, "rotation").value_or(0) != 0)
        return reason::kRotated;
    }
    if (options_.polygons && segmentation != nullptr && !segmentation->empty()) {
      if (rings.size() == 1 && rings[0].size() >= 3)
        object.ring = rings[0];
      else
        set_.ledger.note(segmentation->is_object() ? "masks replaced by their boxes"
                                                   : "outlines of several rings replaced by their "
                                                     "boxes");
    }
    return nullptr;
  }

  /// The classes of the file. A category without objects that is the group of another, such as the
  /// root that Roboflow adds, is none.
  void add_classes() {
    std::set<std::string> groups;
    for (const auto& [name, group] : group_of_) groups.insert(group);
    std::vector<std::string>& classes = set_.classes;
    for (const std::string& name : in_order_) {
      const bool is_class = used_.contains(name) || !groups.contains(name);
      if (is_class && std::find(classes.begin(), classes.end(), name) == classes.end())
        classes.push_back(name);
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
  std::set<std::string> used_;                          // names of objects
  std::unordered_map<std::string, size_t> by_id_;
  bool has_orphans_ = false;  // an annotation names no listed image
};

bool has_annotations(const std::filesystem::path& file) {
  return read_file(file.string()).find("\"annotations\"") != std::string::npos;
}

}  // namespace

ForeignSet read_coco_files(const std::vector<std::string>& sources, const ImportOptions& options) {
  ForeignSet set{.sources = find_split_files(sources, kCommand, ".json", has_annotations, options),
                 .assumed_form = BoxForm::kSides};
  for (const std::string& path : set.sources) {
    const JsonOrigin origin{.path = path,
                            .error = "`rematch data from-coco` cannot read this",
                            .fix =
                                "give the JSON with \"images\", \"annotations\" and "
                                "\"categories\" (instances_….json)"};
    const Json document = parse_document(without_nan(read_file(path)), origin);
    for (const char* list : kLists) {
      const Json* found = find_member(document, list);
      if (found == nullptr || !found->is_array())
        refuse_source(kCommand, path, fmt::format("it has no list \"{}\"", list));
    }
    CocoReader(path, options, set).read(document);
  }
  return set;
}

}  // namespace rematch
