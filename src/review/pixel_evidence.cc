#include "review/pixel_evidence.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "data/record.h"

namespace rematch {
namespace {

constexpr double kSlack = 0.002;  // of a side: what rounding explains

}  // namespace

Json* geometry_of(Json& object) {
  if (!object.is_object()) return nullptr;
  for (const char* key : {"bbox_2d", "poly"}) {
    if (const auto found = object.find(key); found != object.end()) return &*found;
  }
  return nullptr;
}

std::vector<Json*> values_of(Json& geometry) {
  std::vector<Json*> values;
  if (!geometry.is_array()) return values;
  for (Json& item : geometry) {
    if (item.is_array()) {
      for (Json& inner : item) values.push_back(&inner);
    } else {
      values.push_back(&item);
    }
  }
  return values;
}

NumberFacts facts_of(Json& record) {
  NumberFacts facts{.are_shares = true};
  for (Json& object : record["objects"]) {
    Json* geometry = geometry_of(object);
    if (geometry == nullptr) continue;
    size_t i = 0;
    for (const Json* number : values_of(*geometry)) {
      const double side = record[i++ % 2 == 0 ? "width" : "height"].get<double>();
      if (!number->is_number()) continue;
      const double value = number->get<double>();
      facts.cannot_be_bins = facts.cannot_be_bins || value > kNumBins || value != std::floor(value);
      facts.leave_image =
          facts.leave_image || value < -kSlack * side || value > (1 + kSlack) * side;
      facts.are_shares = facts.are_shares && value <= 1;
    }
  }
  return facts;
}

void PixelEvidence::add(Json& record) {
  const NumberFacts facts = facts_of(record);
  some_are_pixels_ = some_are_pixels_ || facts.are_pixels();
  some_leave_image_ = some_leave_image_ || facts.leave_image;
  try {
    census_.add(read_record(python_json(record),
                            {.where = "record", .directory = ".", .allow_inverted = true}));
  } catch (const UserError&) {
    return;  // a record that cannot be read says nothing about pixels
  }
}

}  // namespace rematch
