#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tools/import/class_names.h"
#include "tools/import/foreign.h"
#include "tools/import/forms.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kCommand = "from-hf";
constexpr const char* kFix =
    "write {\"file_name\": \"a.jpg\", \"objects\": {\"bbox\": [[x, y, width, height]], "
    "\"category\": [\"cat\"]}}";

std::string file_name(const Json& record) {
  const Json* name = find_member(record, {"file_name", "image", "image_path", "path", "filename"});
  if (name == nullptr) return "";
  return name->is_string() ? name->get<std::string>() : text_member(*name, {"path", "file_name"});
}

/// The member of an object, in lists or alone.
const Json* box_of(const Json& objects) {
  return find_member(objects, {"bbox", "bboxes", "boxes", "box"});
}
const Json* name_of(const Json& objects) {
  return find_member(objects, {"category", "categories", "label", "labels", "name", "class",
                               "category_id", "classes"});
}

/// The i-th entry of a list; null for another value.
const Json* entry_of(const Json* list, size_t i) {
  return list != nullptr && list->is_array() && i < list->size() ? &(*list)[i] : nullptr;
}

void add_object(const Json* box, const Json* name, const char* skipped, const ClassNames& names,
                const ImportOptions& options, ForeignImage& image, Ledger& ledger) {
  const std::optional<std::string> class_of = names.of_value(name);
  if (skipped != nullptr) return image.skip_crowd(class_of.value_or(""), ledger, skipped);
  const std::string place =
      fmt::format("{}: object {}", image.where, image.objects.size() + image.lost.size() + 1);
  const auto numbers = box == nullptr ? std::nullopt : read_four(*box);
  if (!numbers) return image.lose(reason::kNoBox, place);
  if (!class_of) return image.lose(reason::kUnknownClass, place + ": category " + show_json(*name));
  ForeignObject object = make_box(*numbers, options.boxes.value_or(BoxForm::kSides));
  object.desc = *class_of;
  image.objects.push_back(std::move(object));
}

/// Reads `objects`: a list of objects, or lists of their boxes and names.
/// @return the reason why it cannot be read, or nullptr
const char* read_objects(const Json& objects, const ClassNames& names, const ImportOptions& options,
                         ForeignImage& image, Ledger& ledger) {
  if (objects.is_array()) {
    for (const Json& entry : objects)
      add_object(box_of(entry), name_of(entry), skip_note(entry), names, options, image, ledger);
    return nullptr;
  }
  const Json *boxes = box_of(objects), *classes = name_of(objects);
  if (boxes == nullptr || !boxes->is_array() ||
      (classes != nullptr && (!classes->is_array() || classes->size() != boxes->size())))
    return reason::kNotPaired;
  for (size_t i = 0; i < boxes->size(); ++i) {
    Json marks;
    for (const char* key : kSkipKeys) {
      if (const Json* mark = entry_of(find_member(objects, key), i)) marks[key] = *mark;
    }
    add_object(&(*boxes)[i], entry_of(classes, i), skip_note(marks), names, options, image, ledger);
  }
  return nullptr;
}

}  // namespace

ForeignSet read_hf_files(const std::vector<std::string>& sources, const ImportOptions& options) {
  const auto is_metadata = [](const std::filesystem::path& file) {
    return file.filename() == "metadata.jsonl";
  };
  ForeignSet set{.sources = find_split_files(sources, kCommand, ".jsonl", is_metadata, options),
                 .assumed_form = BoxForm::kSides};
  const ClassNames names(options.names);
  set.classes = names.in_order();
  for (const std::string& path : set.sources) {
    std::vector<ForeignImage>& images = set.splits[options.split_name(path)];
    const auto add = [&](const Json& record, const std::string& where) {
      ForeignImage image = image_of_record(record, file_name(record), path, where);
      const Json* objects = find_member(record, "objects");
      const char* reason = image.name.empty() || objects == nullptr || !objects->is_structured()
                               ? reason::kDamagedRecord
                               : read_objects(*objects, names, options, image, set.ledger);
      if (reason != nullptr)
        return set.ledger.lose_record(
            reason, where + ": it needs \"file_name\", and \"objects\" with \"bbox\"");
      images.push_back(std::move(image));
    };
    read_json_records(path, read_file(path), add, set.ledger);
  }
  require_images(set, kCommand, kFix);
  return set;
}

}  // namespace rematch
