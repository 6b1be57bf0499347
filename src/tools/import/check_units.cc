#include "tools/import/check_units.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/terminal_text.h"

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
  int64_t num_leaving = 0;     ///< the right or bottom edge is outside the image
  int64_t num_as_corners = 0;  ///< width > left and height > top, and inside the image as corners
  double smallest = 0, largest = 0;
  bool has_fractions = false;

  void add(const ForeignObject& box, const std::array<double, 2>& sides) {
    ++num_boxes;
    const auto [width, height] = sides;
    smallest = std::min({smallest, box.x0, box.y0, box.x1, box.y1});
    largest = std::max({largest, box.x0, box.y0, box.x1, box.y1});
    for (const double value : {box.x0, box.y0, box.x1, box.y1})
      has_fractions = has_fractions || value != std::floor(value);
    num_beyond += std::min(box.x0, box.y0) < 0 || std::max(box.x0, box.x1) > width ||
                  std::max(box.y0, box.y1) > height;
    num_far += std::min(box.x0 / width, box.y0 / height) < -kFar ||
               std::max(box.x1 / width, box.y1 / height) > 1 + kFar;
    num_leaving += box.x1 > width * (1 + kSlack) || box.y1 > height * (1 + kSlack);
    const double third = box.x1 - box.x0, fourth = box.y1 - box.y0;
    num_as_corners += third > box.x0 && fourth > box.y0 && third <= width * (1 + kSlack) &&
                      fourth <= height * (1 + kSlack);
  }
};

[[noreturn]] void refuse(const std::string& error, const std::string& jsonl, std::string what,
                         const std::string& fix) {
  throw UserError(ErrorKind::kData, {.error = error,
                                     .where = fmt::format("the records for {}", jsonl),
                                     .what = std::move(what),
                                     .fix = fix + "; nothing has been written"});
}

/// Shares that YOLO writes as a centre, width and height.
struct ShareEvidence {
  int64_t num_boxes = 0, num_leaving = 0, num_as_corners = 0;

  void add(const ForeignObject& box) {
    ++num_boxes;
    const double x = (box.x0 + box.x1) / 2, y = (box.y0 + box.y1) / 2;
    const double width = box.x1 - box.x0, height = box.y1 - box.y0;
    num_leaving +=
        box.x0 < -kSlack || box.y0 < -kSlack || box.x1 > 1 + kSlack || box.y1 > 1 + kSlack;
    num_as_corners += width > x && height > y && width <= 1 + kSlack && height <= 1 + kSlack;
  }
};

/// Right boxes never leave their image, so that one in ten is enough.
void check_shares(const ShareEvidence& shares, const std::string& jsonl) {
  if (10 * shares.num_leaving <= shares.num_boxes || shares.num_as_corners < shares.num_boxes)
    return;
  refuse("the boxes look like corners (x1, y1, x2, y2), not centre x, centre y, width, height",
         jsonl,
         fmt::format("read as centre, width and height, {} of {} leave their image; read as "
                     "corners, all lie inside",
                     shares.num_leaving, counted(shares.num_boxes, "box", "boxes")),
         "say what the numbers are: --boxes xyxy, or --boxes cxcywh");
}

void check_pixels(const UnitEvidence& pixels, bool may_be_corners, const std::string& jsonl) {
  const std::string boxes = counted(pixels.num_boxes, "box", "boxes");
  if (pixels.num_boxes > 0 && pixels.largest > 0 && pixels.largest <= 1)
    refuse("the boxes are normalized (0 to 1), not in pixels", jsonl,
           fmt::format("no corner of {} exceeds 1", boxes),
           "multiply them by the width and height of their images; in ms-swift's records write "
           "\"bbox_type\": \"norm1\"");
  if (may_be_corners && 2 * pixels.num_leaving > pixels.num_boxes &&
      pixels.num_as_corners == pixels.num_boxes)
    refuse("the boxes look like corners (x1, y1, x2, y2), not x, y, width, height", jsonl,
           fmt::format("read as x, y, width, height, {} of {} leave their image; read as corners, "
                       "all lie inside",
                       pixels.num_leaving, boxes),
           "say what the numbers are: --boxes xyxy, or --boxes xywh");
  if (pixels.num_boxes >= kFewest && 2 * pixels.num_far > pixels.num_boxes)
    refuse("the boxes are not in pixels of these images", jsonl,
           fmt::format("{} of {} extend far beyond their image; numbers are {:g} … {:g}",
                       pixels.num_far, boxes, pixels.smallest, pixels.largest),
           "give the images that were annotated, at their size then; for numbers of 0 to 1000 in "
           "ms-swift's records write \"bbox_type\": \"norm1000\"" +
               std::string(may_be_corners ? "; for a centre, width and height add --boxes cxcywh"
                                          : ""));
}

void check_answers(const UnitEvidence& answers, const ImportOptions& options,
                   const std::string& jsonl) {
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
}

}  // namespace

std::array<double, 2> sides_of(const ForeignImage& image, const UsableImage& usable,
                               const ImportOptions& options) {
  if (image.unit == CoordUnit::kShares) return {1, 1};
  if (image.unit == CoordUnit::kPixels)
    return {static_cast<double>(usable.size.width_px), static_cast<double>(usable.size.height_px)};
  const StockSides sides = stock_sides(options.scale, usable.size, image.path);
  return {static_cast<double>(sides.x), static_cast<double>(sides.y)};
}

void check_units(const std::vector<ForeignImage>& images,
                 const std::vector<std::optional<UsableImage>>& usable, bool may_be_corners,
                 const ImportOptions& options, const std::string& jsonl) {
  UnitEvidence pixels, answers;
  ShareEvidence shares;
  for (size_t i = 0; i < images.size(); ++i) {
    if (!usable[i]) continue;
    if (images[i].unit == CoordUnit::kShares) {
      for (const ForeignObject& object : images[i].objects) shares.add(object);
      continue;
    }
    const std::array<double, 2> sides = sides_of(images[i], *usable[i], options);
    for (const ForeignObject& object : images[i].objects)
      (images[i].unit == CoordUnit::kPixels ? pixels : answers).add(object, sides);
  }
  if (may_be_corners) check_shares(shares, jsonl);
  check_pixels(pixels, may_be_corners, jsonl);
  check_answers(answers, options, jsonl);
}

}  // namespace rematch
