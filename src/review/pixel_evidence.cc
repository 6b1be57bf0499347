#include "review/pixel_evidence.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/record.h"

namespace rematch {
namespace {

constexpr double kSlack = 0.002;    // of a side: what rounding explains
constexpr double kMostShare = 1.5;  // beyond an edge by half the image: surely no share of a side

/// The box or outline of an object, or null.
Json* geometry_of(Json& object) {
  if (!object.is_object()) return nullptr;
  for (const char* key : {"bbox_2d", "poly"}) {
    if (const auto found = object.find(key); found != object.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

std::vector<Coordinate> coordinates_of(Json& record) {
  const double sides[] = {record["width"].get<double>(), record["height"].get<double>()};
  std::vector<Coordinate> coordinates;
  for (Json& object : record["objects"]) {
    size_t i = 0;
    const auto add = [&](Json& value) {
      const double side = sides[i++ % 2];
      if (value.is_number()) coordinates.push_back({&value, side});
    };
    Json* const geometry = geometry_of(object);
    if (geometry == nullptr || !geometry->is_array()) continue;
    for (Json& item : *geometry) {
      if (item.is_array()) {
        for (Json& inner : item) add(inner);
      } else {
        add(item);
      }
    }
  }
  return coordinates;
}

NumberFacts facts_of(Json& record) {
  const std::vector<Coordinate> coordinates = coordinates_of(record);
  NumberFacts facts{.are_small = !coordinates.empty()};
  for (const auto& [number, side] : coordinates) {
    const double value = number->get<double>();
    facts.cannot_be_bins = facts.cannot_be_bins || value > kNumBins || value != std::floor(value);
    facts.leave_image = facts.leave_image || value < -kSlack * side || value > (1 + kSlack) * side;
    facts.are_small = facts.are_small && value <= kMostShare;
  }
  return facts;
}

void PixelEvidence::add(Json& record) {
  const NumberFacts facts = facts_of(record);
  some_are_pixels_ = some_are_pixels_ || facts.are_pixels();
  has_shares_ = has_shares_ || facts.are_shares();
  some_leave_image_ = some_leave_image_ || facts.leave_image;
  try {
    census_.add(read_record(python_json(record),
                            {.where = "record", .directory = ".", .allow_inverted = true}));
  } catch (const UserError&) {
    return;  // a record that cannot be read says nothing about pixels
  }
}

}  // namespace rematch
