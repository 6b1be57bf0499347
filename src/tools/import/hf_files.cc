#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr SourceForm kForm = {
    .command = "from-hf",
    .ending = "/metadata.jsonl",
    .fix =
        "write {\"file_name\": \"a.jpg\", \"objects\": {\"bbox\": [[x, y, width, height]], "
        "\"category\": [\"cat\"]}}"};

/// Lists of boxes, names and marks as a list of objects.
Json transposed(const Json& columns) {
  Json list = Json::array();
  for (const auto& [key, values] : columns.items()) {
    for (size_t i = 0; values.is_array() && i < values.size(); ++i) list[i][key] = values[i];
  }
  return list;
}

/// The path of the one image of a record; "" without one.
std::string read_image_name(const Json& record) {
  const Json& name =
      member(record, {"images", "image", "file_name", "image_path", "path", "filename"});
  return image_path_of(name.is_array() && name.size() == 1 ? name.front() : name);
}

}  // namespace

ForeignImage read_object_record(const Json& record, const std::string& path,
                                const std::string& where, BoxForm form, ForeignSet& set) {
  ForeignImage image = image_of_record(record, read_image_name(record), path, where);
  const Json& objects = member(record, {"objects"});
  if (image.name.empty() ||
      !(objects.is_array() || member(objects, {"bbox", "bboxes", "boxes", "box"}).is_array()))
    throw LeftOut{reason::kDamagedRecord, "it needs \"file_name\", and \"objects\" with \"bbox\""};
  int number = 0;
  for (const Json& object : objects.is_array() ? objects : transposed(objects)) {
    ForeignEntry entry =
        read_entry(object, fmt::format("{}: object {}", where, ++number), form, set.ledger);
    if (entry.box) entry.rings.clear();
    entry.name = set.names.of_value(
        name_member(object,
                    {"desc", "category", "categories", "label", "labels", "name", "class",
                     "category_id", "classes", "caption", "description"},
                    set.ledger));
    image.add(entry, set);
  }
  return image;
}

ForeignSet read_hf_files(const Strings& sources, const ImportOptions& options) {
  const auto read = [](const Json& record, const auto& path, const auto& where, auto& set,
                       auto& images) {
    images.push_back(read_object_record(record, path, where, BoxForm::kSides, set));
  };
  return read_sources(sources, kForm, {.assumed_form = BoxForm::kSides, .options = options},
                      each_record(read));
}

}  // namespace rematch
