#include "tools/review/pixel_evidence.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "learn/data/record.h"

namespace rematch {
namespace {

constexpr double kSlack = 0.002;         // of a side: room for rounding
constexpr double kMostNormalized = 1.5;  // a larger number cannot be a normalized coordinate

/// The box or outline of an object, or null.
Json* find_geometry(Json& object) {
  if (!object.is_object()) return nullptr;
  for (const char* key : {"bbox_2d", "poly"}) {
    if (const auto found = object.find(key); found != object.end()) return &*found;
  }
  return nullptr;
}

}  // namespace

std::vector<Coordinate> collect_coordinates(Json& record) {
  const double sides[] = {record["width"].get<double>(), record["height"].get<double>()};
  std::vector<Coordinate> coordinates;
  for (Json& object : record["objects"]) {
    size_t i = 0;
    const auto add = [&](Json& value) {
      const double side = sides[i++ % 2];
      if (value.is_number()) coordinates.push_back({&value, side});
    };
    Json* const geometry = find_geometry(object);
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

NumberFacts find_number_facts(Json& record) {
  const std::vector<Coordinate> coordinates = collect_coordinates(record);
  NumberFacts facts{.are_small = !coordinates.empty()};
  for (const auto& [number, side] : coordinates) {
    const double value = number->get<double>();
    facts.cannot_be_bins = facts.cannot_be_bins || value > kNumBins || value != std::floor(value);
    facts.exceed_bins = facts.exceed_bins || value < 0 || value > kNumBins;
    facts.leave_image = facts.leave_image || value < -kSlack * side || value > (1 + kSlack) * side;
    facts.are_small = facts.are_small && value <= kMostNormalized;
  }
  return facts;
}

void PixelEvidence::add(Json& record) {
  const NumberFacts facts = find_number_facts(record);
  some_are_pixels_ = some_are_pixels_ || facts.are_pixels();
  has_normalized_ = has_normalized_ || facts.are_normalized();
  some_leave_image_ = some_leave_image_ || facts.leave_image;
  has_fractions_ = has_fractions_ || (facts.cannot_be_bins && !facts.are_small);
  some_exceed_bins_ = some_exceed_bins_ || facts.exceed_bins;
  try {
    census_.add(read_record(python_json(record),
                            {.where = "record", .directory = ".", .allow_inverted = true}));
  } catch (const UserError&) {
    return;  // an unreadable record is no evidence
  }
}

}  // namespace rematch
