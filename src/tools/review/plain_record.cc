#include "tools/review/plain_record.h"

#include <nlohmann/json.hpp>

#include "tools/import/image_files.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kNameKeys[] = {"desc",  "label",   "category",   "name",
                                     "class", "caption", "description"};
constexpr const char* kShapeKeys[] = {"bbox_2d", "bbox", "box", "poly"};

/// True if members of these names have different values.
bool differ(const Json& object, std::span<const char* const> keys) {
  const Json* first = nullptr;
  for (const char* key : keys) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    if (first != nullptr && *first != *found) return true;
    first = &*found;
  }
  return false;
}

/// Replaces the text of each coord token by its number.
void read_coord_tokens(Json& value) {
  constexpr std::string_view kToken = "<|coord_";
  if (value.is_array()) {
    for (Json& each : value) read_coord_tokens(each);
  } else if (value.is_string() && value.get_ref<const std::string&>().starts_with(kToken)) {
    const std::string text = value.get<std::string>();
    value = text.substr(kToken.size(), text.find('|', kToken.size()) - kToken.size());
  }
}

}  // namespace

ForeignImage read_plain_record(Json record, const std::string& path, const std::string& where) {
  if (const auto objects = record.find("objects"); record.is_object() && objects != record.end()) {
    for (Json& object : *objects) {
      for (Json& member : object) {
        if (member.is_array()) read_coord_tokens(member);
      }
      for (const auto& member : object.items()) {
        if (!is_among(member.key(), kNameKeys) && !is_among(member.key(), kShapeKeys))
          throw LeftOut{"a record with an unknown member in an object", member.key()};
      }
      if (object.is_object() && (differ(object, kNameKeys) || differ(object, kShapeKeys)))
        throw LeftOut{"a record with two names or two shapes of an object", show_json(object)};
    }
  }
  ForeignSet ignored{.options = {.polygons = true}};
  ForeignImage image = read_object_record(record, path, where, BoxForm::kCorners, ignored);
  image.unit = CoordUnit::kShares;
  image.prompt = text_member(record, {"prompt"});
  for (const char* key :
       {"images", "image", "file_name", "image_path", "width", "height", "prompt", "objects"})
    record.erase(key);
  if (!record.empty()) image.extra = python_json(record);
  return image;
}

std::vector<Numbers> numbers_of(const ForeignImage& image) {
  std::vector<Numbers> all;
  for (const ForeignObject& object : image.objects) {
    Numbers& numbers = all.emplace_back();
    if (object.ring.empty()) numbers = {object.x0, object.y0, object.x1, object.y1};
    for (const auto& [x, y] : object.ring) numbers.insert(numbers.end(), {x, y});
  }
  return all;
}

}  // namespace rematch
