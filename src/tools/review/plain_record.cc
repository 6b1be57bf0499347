#include "tools/review/plain_record.h"

#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "learn/data/image_files.h"
#include "tools/import/geometry.h"
#include "tools/import/json_value.h"
#include "tools/import/reasons.h"
#include "tools/import/source_files.h"

namespace rematch {
namespace {

constexpr const char* kObjectKeys[] = {"desc",  "label",   "category",    "name",
                                       "class", "caption", "description", "bbox_2d",
                                       "bbox",  "box",     "poly"};

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

/// The path of the one image of a record.
std::string read_image_path(const Json& record) {
  const Json* images = find_member(record, {"images", "image", "file_name", "image_path"});
  if (images != nullptr && images->is_array() && images->size() == 1) images = &images->front();
  const std::string path = images == nullptr ? "" : image_path_of(*images);
  if (path.empty()) throw LeftOut{reason::kSeveralImages};
  return path;
}

ForeignEntry read_object(Json object, const std::string& place) {
  for (Json& member : object) {
    if (member.is_array()) read_coord_tokens(member);
  }
  ForeignEntry entry = read_entry(object, place);
  for (const auto& member : object.items()) {
    if (!is_among(member.key(), kObjectKeys)) entry.reason = "an object with an unknown member";
  }
  if (entry.box) entry.rings.clear();
  entry.name =
      text_member(object, {"desc", "label", "category", "name", "class", "caption", "description"});
  return entry;
}

}  // namespace

ForeignImage read_plain_record(const Json& record, const std::string& path,
                               const std::string& where) {
  const Json* objects = find_member(record, "objects");
  if (objects == nullptr || !objects->is_array())
    throw LeftOut{reason::kDamagedRecord, "it has no list \"objects\""};
  ForeignImage image = image_of_record(record, read_image_path(record), path, where);
  image.unit = CoordUnit::kShares;
  image.prompt = text_member(record, {"prompt"});
  Ledger ignored;
  for (size_t i = 0; i < objects->size(); ++i)
    image.add(read_object((*objects)[i], fmt::format("{}: objects[{}]", where, i)),
              {.polygons = true}, ignored);
  Json others = record;
  for (const char* key :
       {"images", "image", "file_name", "image_path", "width", "height", "prompt", "objects"})
    others.erase(key);
  if (!others.empty()) image.extra = python_json(others);
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
