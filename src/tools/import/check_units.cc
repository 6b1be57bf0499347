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
    if (const std::optional<UnitDoubt> doubt = doubt_unit(boxes_, unit_, form_))
      refuse(fmt::format("the boxes are not in pixels: they {}", doubt->why), numbers(),
             "multiply them by the width and height of their images; in ms-swift's records write "
             "\"bbox_type\": \"norm1\"");
    const int64_t num_far = boxes_.read_as(unit_, form_).num_far;
    if (boxes_.num_boxes >= kFewest && 2 * num_far > boxes_.num_boxes)
      refuse("the boxes are not in pixels of these images",
             fmt::format("{} of {} extend far beyond their image; {}", num_far, boxes(), numbers()),
             "give the images that were annotated, at their size then, or say with --boxes what "
             "the numbers are; for numbers of 0 to 1000 in ms-swift's records write "
             "\"bbox_type\": \"norm1000\"");
  }

  /// @param is_assumed  the user did not say the unit
  void check_answers(bool is_assumed) const {
    constexpr const char* kError = "the coordinates are not in the unit of --scale";
    const std::optional<UnitDoubt> doubt = doubt_unit(boxes_, unit_, form_);
    if (doubt && doubt->unit == CoordinateUnit::kShares)
      refuse(kError, fmt::format("they {}; {}", doubt->why, numbers()), "add --scale normalized");
    if (const int64_t num = boxes_.read_as(unit_, form_).num_outside; 2 * num > boxes_.num_boxes)
      refuse(kError, fmt::format("{} of {} are outside its range; {}", num, boxes(), numbers()),
             reason::fix_for(reason::kBeyondScale));
    if (is_assumed && look_like_pixels(boxes_, form_))
      refuse("the coordinates look like pixels, not thousandths of the sides",
             "none exceeds the sides of its image; " + numbers(),
             "say the unit: --scale file-pixels, --scale pixels (of the resized image), or "
             "--scale relative (0..1000)");
  }

 private:
  std::string boxes() const {
    std::string text = counted(boxes_.num_boxes, "box", "boxes");
    if (num_outlines_ > 0)
      text += fmt::format(" ({} around \"points\" or other outlines)", num_outlines_);
    return text;
  }
  std::string numbers() const {
    return fmt::format("the numbers of {} are {:g} … {:g}",
                       counted(boxes_.num_boxes, "box", "boxes"), boxes_.least, boxes_.most);
  }

  [[noreturn]] void refuse(std::string error, std::string what, const std::string& fix) const {
    throw UserError(ErrorKind::kData, {.error = std::move(error),
                                       .where = fmt::format("the records for {}", jsonl_),
                                       .what = std::move(what),
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
