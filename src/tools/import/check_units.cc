#include "tools/import/check_units.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/error.h"
#include "base/terminal_text.h"
#include "learn/data/box_census.h"

namespace rematch {
namespace {

constexpr double kSlack = 0.002;     // of a side: room for rounding
constexpr double kFar = 0.05;        // of a side: more than a careless annotator
constexpr int64_t kFewest = 3;       // boxes: fewer prove no unit
constexpr double kMostShares = 1.5;  // larger numbers cannot be normalized

/// Counts over the boxes of a split in one unit.
struct UnitEvidence {
  int64_t num_boxes = 0;
  int64_t num_beyond = 0;      ///< a number is outside 0..side
  int64_t num_far = 0;         ///< a number is outside 0..side by more than kFar of it
  int64_t num_leaving = 0;     ///< an edge is outside the image
  int64_t num_as_corners = 0;  ///< the four numbers would be corners inside the image
  int64_t num_swapped = 0;     ///< a right or bottom edge before the left or top one
  int64_t num_as_sides = 0;    ///< the corners would be left, top, width, height inside the image
  double smallest = 0, largest = 0;
  bool has_fractions = false;

  /// @param is_centred  the first two numbers were those of the centre
  void add(const ForeignObject& box, double width, double height, bool is_centred) {
    ++num_boxes;
    smallest = std::min({smallest, box.x0, box.y0, box.x1, box.y1});
    largest = std::max({largest, box.x0, box.y0, box.x1, box.y1});
    for (const double value : {box.x0, box.y0, box.x1, box.y1})
      has_fractions = has_fractions || value != std::floor(value);
    num_beyond += std::min(box.x0, box.y0) < 0 || std::max(box.x0, box.x1) > width ||
                  std::max(box.y0, box.y1) > height;
    num_far += std::min(box.x0 / width, box.y0 / height) < -kFar ||
               std::max(box.x1 / width, box.y1 / height) > 1 + kFar;
    const double first = is_centred ? (box.x0 + box.x1) / 2 : box.x0,
                 second = is_centred ? (box.y0 + box.y1) / 2 : box.y0, third = box.x1 - box.x0,
                 fourth = box.y1 - box.y0, most_x = width * (1 + kSlack),
                 most_y = height * (1 + kSlack);
    num_leaving +=
        box.x1 > most_x || box.y1 > most_y || (is_centred && std::min(box.x0, box.y0) < -kSlack);
    num_as_corners += third > first && fourth > second && third <= most_x && fourth <= most_y;
    num_swapped += third < 0 || fourth < 0;
    num_as_sides +=
        std::min(box.x1, box.y1) > 0 && box.x0 + box.x1 <= most_x && box.y0 + box.y1 <= most_y;
  }
};

[[noreturn]] void refuse(const std::string& error, const std::string& jsonl, std::string what,
                         const std::string& fix) {
  throw UserError(ErrorKind::kData, {.error = error,
                                     .where = fmt::format("the records for {}", jsonl),
                                     .what = std::move(what),
                                     .fix = fix + "; nothing has been written"});
}

/// Refuses boxes that leave their images as they are read, and would not as corners.
/// @param form  what the numbers are read as, not corners
void check_corners(const UnitEvidence& boxes, const std::string& jsonl, BoxForm form) {
  if (boxes.num_as_corners < boxes.num_boxes) return;
  const bool is_centred = form == BoxForm::kCentre;
  refuse(fmt::format("the boxes look like corners (x1, y1, x2, y2), not {}",
                     is_centred ? "centre x, centre y, width, height" : "x, y, width, height"),
         jsonl,
         fmt::format("read as {}, {} of {} leave their image; read as corners, all lie inside",
                     is_centred ? "centre, width and height" : "x, y, width, height",
                     boxes.num_leaving, counted(boxes.num_boxes, "box", "boxes")),
         fmt::format("say what the numbers are: --boxes xyxy, or --boxes {}", box_form_name(form)));
}

/// Refuses corners of which one in twenty is swapped, and that all lie inside as x, y, width, height.
void check_sides(const UnitEvidence& boxes, const std::string& jsonl) {
  if (boxes.num_swapped < 2 || 20 * boxes.num_swapped <= boxes.num_boxes ||
      boxes.num_as_sides < boxes.num_boxes)
    return;
  refuse("the boxes look like x, y, width, height, not corners (x1, y1, x2, y2)", jsonl,
         fmt::format("read as corners, {} of {} are swapped; read as x, y, width, height, all lie "
                     "inside their image",
                     boxes.num_swapped, counted(boxes.num_boxes, "box", "boxes")),
         "say what the numbers are: --boxes xywh, or --boxes xyxy");
}

void check_pixels(const UnitEvidence& pixels, const std::string& jsonl) {
  if (pixels.num_boxes > 0 && pixels.largest > 0 && pixels.largest <= 1)
    refuse("the boxes are normalized (0 to 1), not in pixels", jsonl,
           fmt::format("no corner of {} exceeds 1", counted(pixels.num_boxes, "box", "boxes")),
           "multiply them by the width and height of their images; in ms-swift's records write "
           "\"bbox_type\": \"norm1\"");
}

/// Refuses boxes in pixels of other images.
void check_far(const UnitEvidence& pixels, bool is_assumed, const std::string& jsonl) {
  if (pixels.num_boxes >= kFewest && 2 * pixels.num_far > pixels.num_boxes)
    refuse(
        "the boxes are not in pixels of these images", jsonl,
        fmt::format("{} of {} extend far beyond their image; numbers are {:g} … {:g}",
                    pixels.num_far, counted(pixels.num_boxes, "box", "boxes"), pixels.smallest,
                    pixels.largest),
        "give the images that were annotated, at their size then; for numbers of 0 to 1000 in "
        "ms-swift's records write \"bbox_type\": \"norm1000\"" +
            std::string(is_assumed ? "; for a centre, width and height add --boxes cxcywh" : ""));
}

void check_answers(const UnitEvidence& answers, const PixelChance& chance,
                   const ImportOptions& options, const std::string& jsonl) {
  if (answers.num_boxes == 0) return;
  const bool are_shares = options.scale.unit == StockScale::Unit::kShares;
  if (!are_shares && answers.has_fractions && answers.largest <= kMostShares)
    refuse("the coordinates are not in the unit of --scale", jsonl,
           fmt::format("no coordinate of {} exceeds {:g}: they are normalized (0 to 1)",
                       counted(answers.num_boxes, "box", "boxes"), answers.largest),
           "add --scale normalized");
  if (2 * answers.num_beyond > answers.num_boxes)
    refuse("the coordinates are not in the unit of --scale", jsonl,
           fmt::format("{} of {} are outside its range; coordinates are {:g} … {:g}",
                       answers.num_beyond, counted(answers.num_boxes, "box", "boxes"),
                       answers.smallest, answers.largest),
           "choose the right unit: --scale relative (0..1000), pixels (of the resized image), "
           "file-pixels or normalized (0..1)");
  if (options.scale.is_assumed && chance.is_small())
    refuse("the coordinates look like pixels, not thousandths of the sides", jsonl,
           fmt::format("none of {} exceeds the sides of its image, and the largest number is {:g}",
                       counted(answers.num_boxes, "box", "boxes"), answers.largest),
           "say the unit: --scale file-pixels, --scale pixels (of the resized image), or --scale "
           "relative (0..1000)");
}

}  // namespace

NumberScale coordinate_scale(const ForeignImage& image, const UsableImage& usable,
                             const ImportOptions& options) {
  if (image.unit == CoordUnit::kAnswer) return stock_sides(options.scale, usable.size, image.path);
  if (image.unit == CoordUnit::kShares) return {.x = 1, .y = 1, .in_pixels = true};
  return {.x = usable.size.width_px, .y = usable.size.height_px, .in_pixels = true};
}

void check_units(const std::vector<ForeignImage>& images,
                 const std::vector<std::optional<UsableImage>>& usable,
                 std::optional<BoxForm> assumed, const ImportOptions& options,
                 const std::string& jsonl) {
  std::map<CoordUnit, UnitEvidence> evidence;
  PixelChance chance;
  for (size_t i = 0; i < images.size(); ++i) {
    if (!usable[i]) continue;
    const CoordUnit unit = images[i].unit;
    const NumberScale scale = coordinate_scale(images[i], *usable[i], options);
    double right = 0, bottom = 0;
    for (const ForeignObject& object : images[i].objects) {
      evidence[unit].add(object, scale.x, scale.y, assumed == BoxForm::kCentre);
      right = std::max(right, object.x1);
      bottom = std::max(bottom, object.y1);
    }
    if (unit == CoordUnit::kAnswer && !images[i].objects.empty())
      chance.add(right, bottom, usable[i]->size.width_px, usable[i]->size.height_px);
  }
  const UnitEvidence &shares = evidence[CoordUnit::kShares], &pixels = evidence[CoordUnit::kPixels],
                     &answers = evidence[CoordUnit::kAnswer];
  const bool may_be_corners = assumed && assumed != BoxForm::kCorners;
  // right shares never leave their image, so that one in ten is enough
  if (may_be_corners && 10 * shares.num_leaving > shares.num_boxes)
    check_corners(shares, jsonl, *assumed);
  check_pixels(pixels, jsonl);
  const bool many_leave = 2 * pixels.num_leaving > pixels.num_boxes ||
                          (pixels.num_boxes >= kFewest && 10 * pixels.num_far > pixels.num_boxes);
  if (may_be_corners && many_leave) check_corners(pixels, jsonl, *assumed);
  for (const UnitEvidence* boxes : {&shares, &pixels, &answers}) {
    if (assumed == BoxForm::kCorners) check_sides(*boxes, jsonl);
  }
  check_far(pixels, may_be_corners, jsonl);
  check_answers(answers, chance, options, jsonl);
}

}  // namespace rematch
