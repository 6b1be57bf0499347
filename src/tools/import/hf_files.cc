#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tools/import/class_names.h"
#include "tools/import/directory_format.h"
#include "tools/import/foreign.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kFix =
    "write {\"file_name\": \"a.jpg\", \"objects\": {\"bbox\": [[x, y, width, height]], "
    "\"category\": [\"cat\"]}}";
constexpr DirectoryFormat kDirectory = {
    .command = "from-hf",
    .ending = ".jsonl",
    .error = "this is not a directory of Hugging Face's imagefolder",
    .what = "there is no metadata.jsonl in it or in folders train, validation and test",
    .fix = kFix};

/// Reads one metadata.jsonl into a split.
class HfReader {
 public:
  HfReader(const std::string& path, const ImportOptions& options, ForeignSet& set)
      : path_(path),
        options_(options),
        ledger_(set.ledger),
        names_(read_class_names(options.names)),
        images_(set.splits[options.split_name(path)]) {}

  void read(const std::string& bytes) {
    read_json_records(
        path_, bytes, [this](const Json& record, const std::string& where) { add(record, where); },
        ledger_);
  }

 private:
  static std::string file_name(const Json& record) {
    const Json* name =
        find_member(record, {"file_name", "image", "image_path", "path", "filename"});
    if (name == nullptr) return "";
    if (name->is_object()) return text_member(*name, {"path", "file_name"});
    return name->is_string() ? name->get<std::string>() : "";
  }

  void add(const Json& record, const std::string& where) {
    ForeignImage image = image_of_record(record, file_name(record), path_, where);
    const Json* objects = find_member(record, "objects");
    if (image.name.empty() || objects == nullptr || (!objects->is_object() && !objects->is_array()))
      return ledger_.lose_record(reason::kDamagedRecord,
                                 fmt::format("{}: it has no {}", where,
                                             image.name.empty() ? "\"file_name\"" : "\"objects\""));
    if (objects->is_array()) {
      for (const Json& entry : *objects) {
        if (is_set(crowd_of(entry))) {
          image.skip_crowd(class_name(name_of(entry)).value_or(""), ledger_);
        } else {
          add_object(find_member(entry, {"bbox", "box", "boxes"}), name_of(entry), image);
        }
      }
    } else if (!add_columns(*objects, image)) {
      return ledger_.lose_record(reason::kNotPaired, where);
    }
    images_.push_back(std::move(image));
  }

  static const Json* name_of(const Json& entry) {
    return find_member(entry, {"category", "categories", "label", "labels", "name", "class",
                               "category_id", "classes"});
  }

  static const Json* crowd_of(const Json& objects) {
    return find_member(objects, {"iscrowd", "is_crowd"});
  }

  /// Reads lists of boxes and names.
  /// @return false if their lengths differ
  bool add_columns(const Json& objects, ForeignImage& image) {
    const Json* boxes = find_member(objects, {"bbox", "bboxes", "boxes", "box"});
    const Json* names = name_of(objects);
    if (boxes == nullptr || !boxes->is_array()) return false;
    if (names != nullptr && (!names->is_array() || names->size() != boxes->size())) return false;
    const Json* crowds = crowd_of(objects);
    const size_t num_flags = crowds != nullptr && crowds->is_array() ? crowds->size() : 0;
    for (size_t i = 0; i < boxes->size(); ++i) {
      const Json* name = names == nullptr ? nullptr : &(*names)[i];
      if (i < num_flags && is_set(&(*crowds)[i])) {
        image.skip_crowd(class_name(name).value_or(""), ledger_);
      } else {
        add_object(&(*boxes)[i], name, image);
      }
    }
    return true;
  }

  /// The name of a class: "" for none, nullopt for a number without a name.
  std::optional<std::string> class_name(const Json* value) const {
    const std::optional<std::string> id = read_id(value);
    if (!id) return "";
    if (const auto known = names_.find(*id); known != names_.end()) return known->second;
    return value->is_string() ? id : std::nullopt;
  }

  void add_object(const Json* box, const Json* name, ForeignImage& image) {
    const std::string place =
        fmt::format("{}: object {}", image.where, image.objects.size() + image.lost.size() + 1);
    const std::optional<std::array<double, 4>> numbers =
        box == nullptr ? std::nullopt : read_four(*box);
    if (!numbers) return image.lose(reason::kNoBox, place);
    ForeignObject object = make_box(*numbers, options_.boxes.value_or(BoxForm::kSides));
    const std::optional<std::string> class_of = class_name(name);
    if (!class_of)
      return image.lose(reason::kUnknownClass, place + ": category " + show_json(*name));
    object.desc = *class_of;
    image.objects.push_back(std::move(object));
  }

  const std::string& path_;
  const ImportOptions& options_;
  Ledger& ledger_;
  std::map<std::string, std::string> names_;
  std::vector<ForeignImage>& images_;
};

}  // namespace

ForeignSet read_hf_files(const std::vector<std::string>& sources, const ImportOptions& options) {
  ForeignSet set{.sources = find_split_files(sources, kDirectory, options),
                 .assumed_form = BoxForm::kSides};
  for (const auto& [id, name] : read_class_names(options.names)) set.classes.push_back(name);
  for (const std::string& path : set.sources) {
    const std::string bytes = read_file(path);
    if (bytes.find("\"objects\"") == bytes.npos || bytes.find("\"messages\"") != bytes.npos)
      refuse_other_format(path, bytes, kDirectory.command, "this is no metadata.jsonl with boxes");
    HfReader(path, options, set).read(bytes);
  }
  require_images(set, "no record has boxes", kFix);
  return set;
}

}  // namespace rematch
