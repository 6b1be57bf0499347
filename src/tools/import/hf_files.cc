#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "tools/import/class_names.h"
#include "tools/import/foreign.h"
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

/// Lists of boxes, names and marks as a list of objects.
Json transposed(const Json& columns) {
  Json list = Json::array();
  for (const auto& [key, values] : columns.items()) {
    for (size_t i = 0; values.is_array() && i < values.size(); ++i) list[i][key] = values[i];
  }
  return list;
}

void add_object(const Json& entry, const ClassNames& names, const ImportOptions& options,
                ForeignImage& image, Ledger& ledger) {
  const Json *box = box_of(entry), *name = name_of(entry);
  const std::optional<std::string> class_of = names.of_value(name);
  if (const char* skipped = skip_note(entry))
    return image.skip_crowd(class_of.value_or(""), ledger, skipped);
  const std::string place =
      fmt::format("{}: object {}", image.where, image.objects.size() + image.lost.size() + 1);
  const auto numbers = box == nullptr ? std::nullopt : read_four(*box);
  if (!numbers) return image.lose(reason::kNoBox, place);
  if (!class_of) return image.lose(reason::kUnknownClass, place + ": category " + show_json(*name));
  image.add_box(*numbers, options.boxes.value_or(BoxForm::kSides), *class_of);
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
      const Json* boxes = objects == nullptr ? nullptr : box_of(*objects);
      if (image.name.empty() || objects == nullptr ||
          !(objects->is_array() || (boxes != nullptr && boxes->is_array())))
        return set.ledger.lose_record(
            reason::kDamagedRecord,
            where + ": it needs \"file_name\", and \"objects\" with \"bbox\"");
      for (const Json& entry : objects->is_array() ? *objects : transposed(*objects))
        add_object(entry, names, options, image, set.ledger);
      images.push_back(std::move(image));
    };
    read_json_records(path, read_file(path), add, set.ledger);
  }
  require_images(set, kCommand, kFix);
  return set;
}

}  // namespace rematch
