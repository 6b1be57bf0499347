#include "tools/review/field_names.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "tools/review/plain_numbers.h"

namespace rematch {
namespace {

constexpr const char* kDescKeys[] = {"label", "category", "name",
                                     "class", "caption",  "description"};
constexpr const char* kImageKeys[] = {"image", "file_name", "image_path"};

void rename_desc(Json& object, Repairs& repairs) {
  for (const char* key : kDescKeys) {
    if (object.contains("desc") || !object.contains(key) || !object[key].is_string()) continue;
    object["desc"] = object[key];
    object.erase(key);
    ++repairs[fmt::format("\"{}\" renamed to \"desc\"", key)];
  }
}

void rename_bbox(Json& object, Repairs& repairs) {
  for (const char* key : {"bbox", "box", "bndbox"}) {
    if (!object.contains(key) || object.contains("bbox_2d") || object.contains("poly")) continue;
    object["bbox_2d"] = object[key];
    object.erase(key);
    ++repairs[fmt::format("\"{}\" renamed to \"bbox_2d\"", key)];
  }
}

/// Numbers in quotes, and a box of two pairs.
void plain_numbers(Json& object, Repairs& repairs) {
  for (const char* key : {"bbox_2d", "poly"}) {
    if (!object.contains(key)) continue;
    Json& geometry = object[key];
    const std::vector<double> numbers = read_plain_numbers(geometry);
    if (numbers.empty()) continue;
    const bool is_box = std::string_view(key) == "bbox_2d";
    const bool is_nested = is_box && geometry.front().is_array() && numbers.size() == 4;
    const bool is_quoted = std::any_of(geometry.begin(), geometry.end(), [](const Json& item) {
      return item.is_string() ||
             (item.is_array() && std::any_of(item.begin(), item.end(),
                                             [](const Json& each) { return each.is_string(); }));
    });
    if (!is_nested && !is_quoted) continue;
    if (is_nested) ++repairs["boxes of two pairs, written as four numbers"];
    if (is_quoted) ++repairs["geometries with numbers in quotes"];
    geometry = Json::array();
    for (const double number : numbers) add_number(geometry, number);
  }
}

}  // namespace

void rename_image(Json& record, Repairs& repairs) {
  for (const char* key : kImageKeys) {
    if (record.contains("images") || !record.contains(key) || !record[key].is_string()) continue;
    record["images"] = Json::array({record[key]});
    record.erase(key);
    ++repairs[fmt::format("\"{}\" renamed to \"images\", a list", key)];
  }
  if (!record.contains("images") || !record["images"].is_string()) return;
  record["images"] = Json::array({record["images"]});
  ++repairs["one path in place of a list of images"];
}

void rename_object_fields(Json& object, Repairs& repairs) {
  rename_desc(object, repairs);
  rename_bbox(object, repairs);
  plain_numbers(object, repairs);
}

void add_number(Json& list, double number) {
  const bool is_whole = number == std::floor(number) && std::abs(number) < 1e9;
  if (is_whole) {
    list.push_back(static_cast<int64_t>(number));
  } else {
    list.push_back(number);
  }
}

}  // namespace rematch
