#include "tools/import/write_steps.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/terminal_text.h"
#include "learn/data/units.h"

namespace rematch {
namespace {

constexpr int64_t kFewest = 3;  // boxes: fewer beyond their image prove no unit

CoordinateUnit answer_unit(const StockScale& scale) {
  if (scale.unit == StockScale::Unit::kShares) return CoordinateUnit::kShares;
  return scale.is_in_pixels() ? CoordinateUnit::kPixels : CoordinateUnit::kBins;
}

/// Boxes whose numbers are evidently in another unit.
/// @return what shows it; "" for none
std::string find_other_unit(const UnitEvidence& boxes, CoordinateUnit unit, BoxForm form,
                            bool is_answer, bool is_assumed) {
  const std::optional<UnitDoubt> doubt = doubt_unit(boxes, unit, form);
  const UnitEvidence::Reading& reading = boxes.read_as(unit, form);
  // boxes of annotations are cut at the image's edge
  const int64_t num_beyond = is_answer                    ? reading.num_outside
                             : boxes.num_boxes >= kFewest ? reading.num_far
                                                          : 0;
  if (doubt && (!is_answer || doubt->unit == CoordinateUnit::kShares))
    return std::string("they ") + doubt->why;
  if (2 * num_beyond > boxes.num_boxes)
    return fmt::format("{} of {} extend far beyond their image", num_beyond,
                       counted(boxes.num_boxes, "box", "boxes"));
  return is_answer && is_assumed && look_like_pixels(boxes, form)
             ? "they look like pixels: none exceeds the sides of its image"
             : "";
}

/// The boxes of each unit as numbers of a form.
std::map<CoordUnit, UnitEvidence> collect_evidence(const ForeignImages& images, BoxForm form,
                                                   const ImportOptions& options) {
  std::map<CoordUnit, UnitEvidence> evidence;
  for (const ForeignImage& image : images) {
    if (image.size.width_px == 0 || image.defect) continue;
    NumberScale sides = coordinate_scale(image, options);
    if (image.unit == CoordUnit::kAnswer && !options.scale.is_in_pixels())
      sides = {.x = image.size.width_px, .y = image.size.height_px};
    std::vector<Numbers> boxes;
    for (const ForeignObject& object : image.objects)
      boxes.push_back(from_corners({object.x0, object.y0, object.x1, object.y1}, form));
    evidence[image.unit].add(boxes, sides.x, sides.y);
  }
  return evidence;
}

}  // namespace

NumberScale coordinate_scale(const ForeignImage& image, const ImportOptions& options) {
  if (image.unit == CoordUnit::kAnswer) return stock_sides(options.scale, image.size, image.path);
  if (image.unit == CoordUnit::kShares) return {.x = 1, .y = 1, .in_pixels = true};
  return {.x = image.size.width_px, .y = image.size.height_px, .in_pixels = true};
}

void check_units(const ForeignSet& set, const ForeignImages& images, const std::string& jsonl) {
  const ImportOptions& options = set.options;
  const std::optional<BoxForm> assumed = options.boxes ? std::nullopt : set.assumed_form;
  const BoxForm form = assumed.value_or(BoxForm::kCorners);
  for (const auto& [kind, boxes] : collect_evidence(images, form, options)) {
    const bool is_answer = kind == CoordUnit::kAnswer, is_shares = kind == CoordUnit::kShares;
    const CoordinateUnit unit = is_answer   ? answer_unit(options.scale)
                                : is_shares ? CoordinateUnit::kShares
                                            : CoordinateUnit::kPixels;
    const std::optional<FormDoubt> doubt = assumed ? doubt_form(boxes, unit, form) : std::nullopt;
    const BoxForm likely = doubt && !doubt->fitting.empty() ? doubt->fitting.front() : form;
    Problem problem;
    // records of swapped corners are left out
    if (likely != form && (form != BoxForm::kCorners || boxes.num_swapped > 1))
      problem = {.error = fmt::format("the boxes look like {}, not {}", form_words(likely),
                                      form_words(form)),
                 .what = doubt->why,
                 .fix = fmt::format("say what the numbers are: --boxes {}, or --boxes {}",
                                    box_form_name(likely), box_form_name(form))};
    else if (is_answer)
      problem = {.error = "the coordinates are not in the unit of --scale",
                 .what = find_other_unit(boxes, unit, form, true, options.scale.is_assumed),
                 .fix = reason::fix_for(reason::kBeyondScale)};
    else if (!is_shares)
      problem = {
          .error = "the boxes are not in pixels of these images",
          .what = find_other_unit(boxes, unit, form, false, false),
          .fix = fmt::format(
              "give the images that were annotated, at their size then, and numbers in their "
              "pixels{}; ms-swift's records say \"bbox_type\": \"norm1\" for 0 to 1 and "
              "\"norm1000\" for 0 to 1000",
              assumed ? " (or say with --boxes what they are)" : "")};
    if (problem.what.empty()) continue;
    problem.where = fmt::format("the records for {}", jsonl);
    problem.what += fmt::format("; their numbers are {:g} … {:g}", boxes.least, boxes.most);
    problem.fix += "; nothing has been written";
    throw data_error(problem);
  }
}

}  // namespace rematch
