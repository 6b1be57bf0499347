#include "learn/data/units.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/flow/sample.h"
#include "base/terminal_text.h"

namespace rematch {
namespace {

constexpr double kSlack = 0.002;    // of a side: room for rounding
constexpr double kFar = 0.05;       // of a side: more than a careless annotator
constexpr double kMostSmall = 1.5;  // larger numbers cannot be shares
// A false alarm in one of ten thousand correct sets with evenly spread boxes.
constexpr double kMinChance = 1e-4;
constexpr int64_t kFewObjects = 30;  // fewer do not decide
constexpr int64_t kFewest = 3;       // boxes: fewer prove nothing

constexpr BoxForm kForms[] = {BoxForm::kCorners, BoxForm::kSides, BoxForm::kCentre};

/// True for more than one in `part`.
bool is_many(int64_t some, int64_t all, int64_t part) { return part * some > all; }

bool leave(const UnitEvidence& numbers, CoordinateUnit unit, BoxForm form) {
  return numbers.read_as(unit, form).some_leave;
}

/// The meaning of numbers that are read as bins. The first row that holds counts.
struct Row {
  CoordinateUnit is;
  const char* why;
  bool (*holds)(const UnitEvidence& numbers, BoxForm form);
};
constexpr Row kTable[] = {
    {CoordinateUnit::kShares, "look normalized (0 to 1): no number is larger",
     [](const UnitEvidence& numbers, BoxForm) {
       return numbers.num_shares > 0 && numbers.num_small == numbers.num_images;
     }},
    {CoordinateUnit::kPixels,
     "look like pixels: some are not bins (fractions, or above 1000), and none leaves its image",
     [](const UnitEvidence& numbers, BoxForm form) {
       return (numbers.has_fractions || leave(numbers, CoordinateUnit::kBins, form)) &&
              !leave(numbers, CoordinateUnit::kPixels, form);
     }},
    {CoordinateUnit::kPixels,
     "look like pixels: none exceeds its image's side, but bins go to 999 on every side",
     look_like_pixels},
    {CoordinateUnit::kBins, "look like bins with fractions, but bins are whole numbers",
     [](const UnitEvidence& numbers, BoxForm form) {
       return numbers.has_fractions && !leave(numbers, CoordinateUnit::kBins, form);
     }},
};

/// The units in which nearly all numbers lie inside their images.
std::vector<CoordinateUnit> possible_units(const UnitEvidence& evidence) {
  if (kTable[0].holds(evidence, BoxForm::kCorners)) return {CoordinateUnit::kShares};
  std::vector<CoordinateUnit> units;
  for (const CoordinateUnit unit : {CoordinateUnit::kBins, CoordinateUnit::kPixels}) {
    if (!is_many(evidence.read_as(unit, BoxForm::kCorners).num_outside, evidence.num_boxes, 20))
      units.push_back(unit);
  }
  return units.empty() ? std::vector{CoordinateUnit::kBins} : units;
}

/// Judges boxes of a width and a height: many leave their image, and all would be corners in it.
std::optional<FormDoubt> doubt_sides(const UnitEvidence& evidence, CoordinateUnit unit,
                                     BoxForm form) {
  const UnitEvidence::Reading& reading = evidence.read_as(unit, form);
  const int64_t num_boxes = evidence.num_boxes;
  // right shares never leave their image, so that one in ten is enough
  const bool many_leave =
      is_many(reading.num_outside, num_boxes, unit == CoordinateUnit::kShares ? 10 : 2) ||
      (num_boxes >= kFewest && is_many(reading.num_far, num_boxes, 10));
  if (!many_leave || evidence.read_as(unit, BoxForm::kCorners).num_inside < num_boxes)
    return std::nullopt;
  return FormDoubt{.fitting = {BoxForm::kCorners},
                   .why = fmt::format(
                       "read as {}, {} of {} leave their image; read as corners, all lie inside",
                       form_words(form), reading.num_outside, counted(num_boxes, "box", "boxes"))};
}

Numbers to_edges(const Numbers& box, BoxForm form) {
  const std::array<double, 4> edges = to_corners({box[0], box[1], box[2], box[3]}, form);
  return {edges.begin(), edges.end()};
}

/// @param edges  left, top, right and bottom, or the vertices of an outline
void add_reading(UnitEvidence::Reading& reading, const Numbers& edges, double width, double height,
                 BoxForm form) {
  double under = 0, over = 0;
  for (size_t i = 0; i < edges.size(); ++i) {
    const double place = edges[i] / (i % 2 == 0 ? width : height);
    under = std::max(under, -place);
    over = std::max(over, place - 1);
  }
  reading.some_leave = reading.some_leave || std::max(under, over) > kSlack;
  if (edges.size() != 4) return;
  // centres have no negative edges; left and top may be a little outside in annotations
  const bool is_outside = over > kSlack || (form == BoxForm::kCentre && under > kSlack);
  reading.num_outside += is_outside;
  reading.num_far += std::max(under, over) > kFar;
  reading.num_inside += !is_outside && edges[2] > edges[0] && edges[3] > edges[1];
}

}  // namespace

const char* form_words(BoxForm form) {
  return form == BoxForm::kCorners ? "corners (x1, y1, x2, y2)"
         : form == BoxForm::kSides ? "x, y, width, height"
                                   : "centre x, centre y, width, height";
}

Numbers from_corners(const std::array<double, 4>& corners, BoxForm form) {
  const auto& [left, top, right, bottom] = corners;
  if (form == BoxForm::kCorners) return {left, top, right, bottom};
  if (form == BoxForm::kSides) return {left, top, right - left, bottom - top};
  return {(left + right) / 2, (top + bottom) / 2, right - left, bottom - top};
}

void UnitEvidence::add(const std::vector<Numbers>& geometries, double width, double height) {
  if (geometries.empty()) return;
  const std::pair<double, double> sides[] = {{kNumBins, kNumBins}, {width, height}, {1, 1}};
  bool fractions = false, small = true;
  for (const Numbers& numbers : geometries) {
    for (const double number : numbers) {
      least = std::min(least, number);
      most = std::max(most, number);
      fractions = fractions || number != std::floor(number);
      small = small && number <= kMostSmall;
    }
    const bool is_box = numbers.size() == 4;
    num_boxes += is_box;
    num_swapped += is_box && (numbers[2] < numbers[0] || numbers[3] < numbers[1]);
    for (const BoxForm form : kForms) {
      const Numbers edges = is_box ? to_edges(numbers, form) : numbers;
      for (const auto& [unit, name] : kCoordinateUnits) {
        const auto& [right, bottom] = sides[static_cast<size_t>(unit)];
        add_reading(readings_[static_cast<size_t>(unit)][static_cast<size_t>(form)], edges, right,
                    bottom, form);
      }
    }
  }
  ++num_images;
  num_objects += std::ssize(geometries);
  num_small += small;
  num_shares += small && fractions;
  has_fractions = has_fractions || (fractions && !small);
  for (const double side : {width, height})
    log_chance += std::log(std::min(1.0, side * (1 + kSlack) / kNumBins));
}

std::optional<UnitDoubt> doubt_unit(const UnitEvidence& evidence, CoordinateUnit read_as,
                                    BoxForm form) {
  // no annotation in pixels has only boxes of one pixel
  if (read_as == CoordinateUnit::kPixels && evidence.num_images > 0 && evidence.most > 0 &&
      evidence.num_small == evidence.num_images)
    return UnitDoubt{.unit = CoordinateUnit::kShares, .why = kTable[0].why};
  if (read_as != CoordinateUnit::kBins) return std::nullopt;
  for (const Row& row : kTable) {
    if (!row.holds(evidence, form)) continue;
    // fractions are rounded only where the user says so: they may be pixels of some images
    const bool is_sure = row.is != CoordinateUnit::kBins && evidence.num_objects >= kFewObjects;
    return UnitDoubt{.unit = row.is, .is_sure = is_sure, .why = row.why};
  }
  return std::nullopt;
}

bool look_like_pixels(const UnitEvidence& evidence, BoxForm form) {
  return !evidence.read_as(CoordinateUnit::kPixels, form).some_leave &&
         evidence.log_chance < std::log(kMinChance);
}

std::optional<FormDoubt> doubt_form(const UnitEvidence& evidence,
                                    std::optional<CoordinateUnit> unit, BoxForm read_as) {
  const int64_t num_boxes = evidence.num_boxes;
  if (read_as != BoxForm::kCorners) return doubt_sides(evidence, *unit, read_as);
  if (!is_many(evidence.num_swapped, num_boxes, 20)) return std::nullopt;
  const std::vector<CoordinateUnit> units = unit ? std::vector{*unit} : possible_units(evidence);
  FormDoubt doubt{.is_sure = evidence.num_objects >= kFewObjects};
  std::string forms;
  for (const BoxForm form : {BoxForm::kSides, BoxForm::kCentre}) {
    const auto num_misfits = std::ranges::count_if(units, [&](CoordinateUnit each) {
      return is_many(num_boxes - evidence.read_as(each, form).num_inside, num_boxes, 20);
    });
    if (num_misfits == 0) {
      doubt.fitting.push_back(form);
      forms += fmt::format("{}{}", forms.empty() ? "" : ", or ", form_words(form));
    } else if (num_misfits < std::ssize(units)) {
      doubt.is_sure = false;
    }
  }
  // corners in any order fit nearly everything: they count where nothing else does
  if (doubt.fitting.empty() && doubt.is_sure) {
    doubt.fitting = {BoxForm::kCorners};
    forms = "only corners in any order";
  }
  doubt.is_sure = doubt.is_sure && doubt.fitting.size() == 1;
  doubt.why =
      fmt::format("swapped corners in {} of {}; they fit {}", evidence.num_swapped,
                  counted(num_boxes, "box", "boxes"), forms.empty() ? "no form surely" : forms);
  return doubt;
}

}  // namespace rematch
