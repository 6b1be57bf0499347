#include "tools/review/record_fields.h"

#include <fmt/core.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

namespace rematch {
namespace {

constexpr const char* kImageKeys[] = {"image", "file_name", "image_path"};
constexpr const char* kDescKeys[] = {"label", "category", "name",
                                     "class", "caption",  "description"};
constexpr const char* kBoxKeys[] = {"bbox", "box", "bndbox"};

void rename(Json& object, const char* from, const char* to, Changes& changes) {
  object[to] = object[from];
  object.erase(from);
  ++changes[fmt::format("\"{}\" renamed to \"{}\"", from, to)];
}

void rename_fields(Json& object, Changes& changes) {
  for (const char* key : kDescKeys) {
    if (!object.contains("desc") && object.contains(key) && object[key].is_string())
      rename(object, key, "desc", changes);
  }
  for (const char* key : kBoxKeys) {
    if (object.contains(key) && !object.contains("bbox_2d") && !object.contains("poly"))
      rename(object, key, "bbox_2d", changes);
  }
}

/// The number in a text of digits.
std::optional<double> number_in(const Json& value) {
  if (!value.is_string()) return std::nullopt;
  const Json number = Json::parse(value.get_ref<const std::string&>(), nullptr, false);
  return number.is_number() ? std::optional(number.get<double>()) : std::nullopt;
}

void flatten_box(Json& object, Changes& changes) {
  const auto box = object.find("bbox_2d");
  const auto is_pair = [](const Json& item) { return item.is_array() && item.size() == 2; };
  if (box == object.end() || !box->is_array() || box->size() != 2 || !is_pair(box->at(0)) ||
      !is_pair(box->at(1)))
    return;
  *box = Json::array({box->at(0)[0], box->at(0)[1], box->at(1)[0], box->at(1)[1]});
  ++changes["boxes of two pairs, written as four numbers"];
}

}  // namespace

void tidy_fields(Json& record, Changes& changes) {
  if (record.contains("images") && record["images"].is_string())
    ++changes["one path in place of a list of images"];
  for (const char* key : kImageKeys) {
    if (!record.contains("images") && record.contains(key) && record[key].is_string())
      rename(record, key, "images", changes);
  }
  if (record.contains("images") && record["images"].is_string())
    record["images"] = Json::array({record["images"]});
  if (!record.contains("objects")) return;
  for (Json& object : record["objects"]) {
    if (!object.is_object()) continue;
    rename_fields(object, changes);
    flatten_box(object, changes);
  }
  for (const std::vector<Json*>& geometry : find_coordinates(record)) {
    bool was_quoted = false;
    for (Json* coordinate : geometry) {
      const std::optional<double> number = number_in(*coordinate);
      if (number) *coordinate = plain_number(*number);
      was_quoted = was_quoted || number;
    }
    if (was_quoted) ++changes["geometries with numbers in quotes"];
  }
}

std::vector<std::vector<Json*>> find_coordinates(Json& record) {
  std::vector<std::vector<Json*>> found;
  if (!record.contains("objects")) return found;
  for (Json& object : record["objects"]) {
    for (const char* key : {"bbox_2d", "poly"}) {
      if (!object.is_object() || !object.contains(key) || !object[key].is_array()) continue;
      std::vector<Json*> geometry;
      for (Json& item : object[key]) {
        if (!item.is_array()) {
          geometry.push_back(&item);
        } else {
          for (Json& inner : item) geometry.push_back(&inner);
        }
      }
      found.push_back(std::move(geometry));
    }
  }
  return found;
}

std::vector<Numbers> find_numbers(Json& record) {
  std::vector<Numbers> found;
  for (const std::vector<Json*>& geometry : find_coordinates(record)) {
    Numbers numbers;
    for (const Json* coordinate : geometry) {
      if (coordinate->is_number()) numbers.push_back(coordinate->get<double>());
    }
    if (!numbers.empty() && numbers.size() == geometry.size()) found.push_back(std::move(numbers));
  }
  return found;
}

Json plain_number(double number) {
  const bool is_whole = number == std::floor(number) && std::abs(number) < 1e9;
  return is_whole ? Json(static_cast<int64_t>(number)) : Json(number);
}

}  // namespace rematch
