#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <unordered_map>

#include "base/file.h"
#include "learn/data/foreign_file.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

bool has_annotations(const std::filesystem::path& file) {
  return read_file(file).find("\"annotations\"") != std::string::npos;
}

constexpr SourceForm kForm = {.command = "from-coco", .ending = ".json", .fits = has_annotations};

/// Reads one COCO file into a split.
class CocoReader {
 public:
  CocoReader(const std::string& path, ForeignSet& set, ForeignImages& images)
      : path_(path), set_(set), images_(images), first_(images.size()) {}

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
  }

 private:
  std::string place(const char* list, size_t index) const {
    return fmt::format("{}: {}[{}]", path_, list, index);
  }

  void read_category(const Json& category) {
    const std::optional<std::string> id = read_id(member(category, {"id"}));
    const std::string name = text_member(category, {"name"}),
                      group = text_member(category, {"supercategory"});
    if (!id || name.empty()) return;
    const auto [known, is_new] = names_.try_emplace(*id, name);
    if (!is_new && known->second != name) known->second = "";
    set_.classes.push_back(name);
    if (group != name && !group.empty()) group_of_[name] = group;
  }

  void read_image(const Json& entry, const std::string& where) {
    const std::optional<std::string> id = read_id(member(entry, {"id"}));
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
        !member(entry, {"neg_category_ids", "not_exhaustive_category_ids"}).is_null();
    images_.push_back(std::move(image));
  }

  void read_annotation(const Json& annotation, const std::string& where) {
    const auto found = by_id_.find(read_id(member(annotation, {"image_id"})).value_or(""));
    if (found == by_id_.end()) {
      has_orphans_ = true;
      return set_.ledger.lose_record("an annotation whose image is not listed", where);
    }
    ForeignImage& image = images_[found->second];
    const double mode = read_number(member(annotation, {"bbox_mode"})).value_or(1);  // detectron2
    ForeignEntry entry =
        read_entry(annotation, where, mode == 0 ? BoxForm::kCorners : BoxForm::kSides, set_.ledger);
    if (mode != 0 && mode != 1) entry.reason = "a box of a bbox_mode other than 0 and 1";
    // CVAT, whose annotations have an attribute "occluded", marks each mask as a crowd
    if (entry.skipped == kCrowd &&
        !member(member(annotation, {"attributes"}), {"occluded"}).is_null()) {
      entry.skipped = nullptr;
      set_.ledger.note("masks of CVAT, which it marks as crowds, imported as objects");
    }
    if (const auto id = read_id(member(annotation, {"category_id"}))) {
      const auto name = names_.find(*id);
      if (name != names_.end()) entry.name = name->second;
      const std::string other = text_member(annotation, {"category_name"});
      if (!other.empty() && other != entry.name) entry.name = "";
      if (entry.name->empty() && entry.reason.empty()) entry.reason = reason::kNotListed;
    }
    const Json &mask = member(annotation, {"segmentation"}), &size = member(mask, {"size"});
    if (size.is_array() && size.size() == 2)
      image.state_size(size.back(), size.front());  // RLE: height, width
    if (set_.options.polygons && mask.is_object())
      set_.ledger.note("masks replaced by their boxes");
    // an image that shows a member of a group ("animal") shows the group
    if (const auto group = group_of_.find(*entry.name); group != group_of_.end())
      image.doubtful.push_back(group->second);
    image.add(entry, set_);
  }

  const std::string& path_;
  ForeignSet& set_;
  ForeignImages& images_;
  size_t first_;                                        // image of this file
  std::unordered_map<std::string, std::string> names_;  // empty: two names
  std::map<std::string, std::string> group_of_;         // supercategory by name
  std::unordered_map<std::string, size_t> by_id_;
  bool has_orphans_ = false;  // an annotation names no listed image
};

void read_coco(const std::string& path, ForeignSet& set, ForeignImages& images) {
  const Json document = parse_written_json(read_file(path), path);
  for (const char* list : {"categories", "images", "annotations"}) {
    if (!member(document, {list}).is_array())
      refuse_source(kForm.command, path, fmt::format("it has no list \"{}\"", list));
  }
  CocoReader(path, set, images).read(document);
}

}  // namespace

ForeignSet read_coco_files(const Strings& sources, const ImportOptions& options) {
  return read_sources(sources, kForm, {.assumed_form = BoxForm::kSides, .options = options},
                      read_coco);
}

}  // namespace rematch
