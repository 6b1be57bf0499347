#include "tools/import/check_units.h"

#include <fmt/core.h>

#include <map>

#include "base/error.h"
#include "base/terminal_text.h"
#include "learn/data/units.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

constexpr int64_t kFewest = 3;  // boxes: fewer beyond their image prove no unit

CoordinateUnit answer_unit(const StockScale& scale) {
  if (scale.unit == StockScale::Unit::kShares) return CoordinateUnit::kShares;
  return scale.is_in_pixels() ? CoordinateUnit::kPixels : CoordinateUnit::kBins;
}

/// The boxes of a split in one unit.
class UnitCheck {
 public:
  /// @param num_outlines  boxes that are those around outlines
  UnitCheck(const UnitEvidence& boxes, int64_t num_outlines, CoordinateUnit unit, BoxForm form,
            const std::string& jsonl)
      : boxes_(boxes), num_outlines_(num_outlines), unit_(unit), form_(form), jsonl_(jsonl) {}

  void check_form() const {
    const std::optional<FormDoubt> doubt = doubt_form(boxes_, unit_, form_);
    const bool has_one_swapped = form_ == BoxForm::kCorners && boxes_.num_swapped < 2;
    if (!doubt || doubt->fitting.empty() || has_one_swapped) return;
    const BoxForm likely = doubt->fitting.front();
    if (likely == form_) return;  // records of swapped corners are left out
    refuse(fmt::format("the boxes look like {}, not {}", form_words(likely), form_words(form_)),
           doubt->why,
           fmt::format("say what the numbers are: --boxes {}, or --boxes {}", box_form_name(likely),
                       box_form_name(form_)));
  }

  /// Boxes of annotations, which are cut at the image's edge.
  void check_pixels() const {
    const std::optional<UnitDoubt> doubt = doubt_unit(boxes_, unit_, form_);
    const int64_t num_far = boxes_.read_as(unit_, form_).num_far;
    if (doubt || (boxes_.num_boxes >= kFewest && 2 * num_far > boxes_.num_boxes))
      refuse("the boxes are not in pixels of these images",
             doubt ? std::string("they ") + doubt->why
                   : fmt::format("{} of {} extend far beyond their image", num_far, boxes()),
             "give the images that were annotated, at their size then, and numbers in their pixels "
             "(or say with --boxes what the numbers are); ms-swift's records say \"bbox_type\": "
             "\"norm1\" for 0 to 1 and \"norm1000\" for 0 to 1000");
  }

  /// @param is_assumed  the user did not say the unit
  void check_answers(bool is_assumed) const {
    const std::optional<UnitDoubt> doubt = doubt_unit(boxes_, unit_, form_);
    const int64_t num_outside = boxes_.read_as(unit_, form_).num_outside;
    std::string what;
    if (doubt && doubt->unit == CoordinateUnit::kShares)
      what = std::string("they ") + doubt->why;
    else if (2 * num_outside > boxes_.num_boxes)
      what = fmt::format("{} of {} are outside its range", num_outside, boxes());
    else if (is_assumed && look_like_pixels(boxes_, form_))
      what = "they look like pixels: none exceeds the sides of its image";
    if (!what.empty())
      refuse("the coordinates are not in the unit of --scale", what,
             reason::fix_for(reason::kBeyondScale));
  }

 private:
  std::string boxes() const {
    std::string text = counted(boxes_.num_boxes, "box", "boxes");
    if (num_outlines_ > 0)
      text += fmt::format(" ({} around \"points\" or other outlines)", num_outlines_);
    return text;
  }
  [[noreturn]] void refuse(std::string error, const std::string& what,
                           const std::string& fix) const {
    throw UserError(ErrorKind::kData, {.error = std::move(error),
                                       .where = fmt::format("the records for {}", jsonl_),
                                       .what = fmt::format("{}; their numbers are {:g} … {:g}",
                                                           what, boxes_.least, boxes_.most),
                                       .fix = fix + "; nothing has been written"});
  }

  const UnitEvidence& boxes_;
  int64_t num_outlines_;
  CoordinateUnit unit_;
  BoxForm form_;
  const std::string& jsonl_;
};

}  // namespace

NumberScale coordinate_scale(const ForeignImage& image, const ImportOptions& options) {
  if (image.unit == CoordUnit::kAnswer) return stock_sides(options.scale, image.size, image.path);
  if (image.unit == CoordUnit::kShares) return {.x = 1, .y = 1, .in_pixels = true};
  return {.x = image.size.width_px, .y = image.size.height_px, .in_pixels = true};
}

void check_units(const std::vector<ForeignImage>& images, std::optional<BoxForm> assumed,
                 const ImportOptions& options, const std::string& jsonl) {
  const CoordinateUnit answers = answer_unit(options.scale);
  const BoxForm form = assumed.value_or(BoxForm::kCorners);
  std::map<CoordUnit, UnitEvidence> evidence;
  std::map<CoordUnit, int64_t> num_outlines;
  for (const ForeignImage& image : images) {
    if (image.size.width_px == 0 || image.defect) continue;
    NumberScale sides = coordinate_scale(image, options);
    if (image.unit == CoordUnit::kAnswer && !options.scale.is_in_pixels())
      sides = {.x = image.size.width_px, .y = image.size.height_px};
    std::vector<Numbers> boxes;
    for (const ForeignObject& object : image.objects) {
      boxes.push_back(from_corners({object.x0, object.y0, object.x1, object.y1}, form));
      num_outlines[image.unit] += object.is_outline;
    }
    evidence[image.unit].add(boxes, sides.x, sides.y);
  }
  for (const auto& [kind, boxes] : evidence) {
    const CoordinateUnit unit = kind == CoordUnit::kAnswer   ? answers
                                : kind == CoordUnit::kShares ? CoordinateUnit::kShares
                                                             : CoordinateUnit::kPixels;
    const UnitCheck check(boxes, num_outlines[kind], unit, form, jsonl);
    if (assumed) check.check_form();
    if (kind == CoordUnit::kPixels) check.check_pixels();
    if (kind == CoordUnit::kAnswer) check.check_answers(options.scale.is_assumed);
  }
}

}  // namespace rematch
