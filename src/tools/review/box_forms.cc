#include "tools/review/box_forms.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/flow/sample.h"
#include "tools/review/plain_numbers.h"

namespace rematch {
namespace {

constexpr double kSlack = 1.002;  // of a side: room for rounding

/// The side of a record's image, in pixels, or that of bins if the record has none.
double side_of(const Json& record, const char* key) {
  const auto side = record.find(key);
  return side != record.end() && side->is_number() ? side->get<double>() : kNumBins;
}

/// True if a box lies inside its image, in bins or in pixels.
bool is_inside(const std::array<double, 4>& box, double width, double height) {
  const auto fits = [&](double most_x, double most_y) {
    return box[2] <= most_x * kSlack && box[3] <= most_y * kSlack;
  };
  const bool is_ordered = box[0] >= 0 && box[1] >= 0 && box[2] > box[0] && box[3] > box[1];
  return is_ordered && (fits(kNumBins, kNumBins) || fits(width, height));
}

}  // namespace

std::optional<std::array<double, 4>> find_four_numbers(const Json& object) {
  if (!object.is_object()) return std::nullopt;
  for (const char* key : {"bbox_2d", "bbox", "box", "bndbox"}) {
    const auto found = object.find(key);
    if (found == object.end()) continue;
    const std::vector<double> numbers = read_plain_numbers(*found);
    if (numbers.size() != 4) return std::nullopt;
    return std::array<double, 4>{numbers[0], numbers[1], numbers[2], numbers[3]};
  }
  return std::nullopt;
}

void BoxFormCensus::add(const Json& record) {
  if (!record.is_object()) return;
  const auto objects = record.find("objects");
  if (objects == record.end() || !objects->is_array()) return;
  const double width = side_of(record, "width"), height = side_of(record, "height");
  for (const Json& object : *objects) {
    const std::optional<std::array<double, 4>> box = find_four_numbers(object);
    if (!box) continue;
    ++num_boxes_;
    num_swapped_ += (*box)[2] < (*box)[0] || (*box)[3] < (*box)[1];
    num_as_sides_ += is_inside(to_corners(*box, BoxForm::kSides), width, height);
    num_as_centre_ += is_inside(to_corners(*box, BoxForm::kCentre), width, height);
  }
}

std::string BoxFormCensus::verdict() const {
  const int64_t most = std::max(num_as_sides_, num_as_centre_);
  const char* sides = "x, y, width, height";
  const char* centre = "centre x, centre y, width, height";
  if (10 * most < 9 * num_boxes_) return fmt::format("most are no {} either", sides);
  const std::string form = num_as_sides_ == num_as_centre_ ? fmt::format("{}, or {}", sides, centre)
                           : num_as_sides_ > num_as_centre_ ? sides
                                                            : centre;
  return fmt::format("these look like {} ({} lie inside their image when read so)", form,
                     most == num_boxes_ ? "all" : fmt::format("{} of {}", most, num_boxes_));
}

}  // namespace rematch
