#include "tools/draw/panel.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/flow/bins.h"
#include "base/text.h"
#include "model/vision/resample.h"

namespace rematch {
namespace {

constexpr int kGap = 10, kPad = 3, kTextPx = 13, kLargeTextPx = 20, kLargeSidePx = 700;

Point centre(const std::vector<Point>& points) {
  Point sum;
  for (const Point& point : points) {
    sum.x += point.x;
    sum.y += point.y;
  }
  return {sum.x / static_cast<double>(points.size()), sum.y / static_cast<double>(points.size())};
}

/// A rectangle in pixels.
struct Area {
  int left, top, width, height;

  bool overlaps(const Area& other) const {
    return left < other.left + other.width && other.left < left + width &&
           top < other.top + other.height && other.top < top + height;
  }
};

/// Draws the label in white on the object's colour, inside the image: above the object, or lower
/// where an earlier label is in the way.
void draw_label(Canvas& canvas, const std::vector<Point>& points, const DrawnObject& object,
                int text_px, std::vector<Area>& taken) {
  if (object.label.empty()) return;
  double left = points[0].x, top = points[0].y;
  for (const Point& point : points) {
    left = std::min(left, point.x);
    top = std::min(top, point.y);
  }
  Area area{0, 0, text_width(object.label, text_px) + 2 * kPad, text_height(text_px)};
  area.left = std::max(0, std::min(static_cast<int>(left), canvas.width_px() - area.width));
  area.top = std::max(0, static_cast<int>(top) - area.height);
  const auto is_taken = [&](const Area& other) { return area.overlaps(other); };
  while (area.top + area.height < canvas.height_px() && std::ranges::any_of(taken, is_taken))
    area.top += area.height;
  area.top = std::max(0, std::min(area.top, canvas.height_px() - area.height));
  taken.push_back(area);
  canvas.fill(area.left, area.top, area.width, area.height, object.color);
  canvas.text(area.left + kPad, area.top, object.label, kWhite, text_px);
}

/// `text`, shortened to whole characters and "…" if it is too wide.
std::string shorten(const std::string& text, int width_px) {
  if (text_width(text, kTextPx) <= width_px) return text;
  std::string fitting = "…";
  for (size_t end = 0; end < text.size();) {
    next_code_point(text, end);
    const std::string longer = text.substr(0, end) + "…";
    if (text_width(longer, kTextPx) > width_px) break;
    fitting = longer;
  }
  return fitting;
}

/// One line of coloured squares, each with its text, at the top of a sheet.
void draw_legend(Canvas& sheet, const std::vector<LegendEntry>& legend) {
  int left = kGap;
  for (const LegendEntry& entry : legend) {
    const int width = kTextPx + kPad + text_width(entry.text, kTextPx);
    if (left + width > sheet.width_px() - kGap) return;
    sheet.fill(left, kGap + 2, kTextPx, kTextPx, entry.color);
    sheet.text(left + kTextPx + kPad, kGap, entry.text, kInk, kTextPx);
    left += width + 2 * kGap;
  }
}

}  // namespace

Rgb ClassColors::of(const std::string& name) {
  // Dark enough for white letters.
  static constexpr Rgb kColors[] = {kPredictionColor, {30, 100, 200}, {0, 130, 60},
                                    {150, 60, 190},   {190, 95, 0},   {0, 130, 140},
                                    {190, 40, 120},   {110, 110, 0},  {90, 80, 200},
                                    {120, 70, 40},    {70, 100, 120}, {40, 40, 40}};
  return colors_.try_emplace(name, kColors[colors_.size() % std::size(kColors)]).first->second;
}

std::string scored_label(const std::string& name, const std::vector<double>& scores,
                         size_t object) {
  constexpr double kLeastShown = 0.005;  // a lower one would read "0.00"
  if (scores.empty() || scores.at(object) < kLeastShown) return name;
  return fmt::format("{} {:.2f}", name, scores[object]);
}

std::vector<Point> vertices_px(const Geometry& geometry, int width_px, int height_px) {
  const auto at = [&](size_t x, size_t y) {
    return Point{place_of(geometry.bins[x], width_px), place_of(geometry.bins[y], height_px)};
  };
  if (geometry.kind == GeometryKind::kBbox2d) return {at(0, 1), at(2, 1), at(2, 3), at(0, 3)};
  std::vector<Point> points;
  for (size_t i = 0; i + 1 < geometry.bins.size(); i += 2) points.push_back(at(i, i + 1));
  return points;
}

Image scale_to(const Image& image, int long_side_px) {
  const double factor =
      static_cast<double>(long_side_px) / std::max(image.width_px, image.height_px);
  const auto scaled = [&](int side) {
    return std::max(1, static_cast<int>(std::lround(side * factor)));
  };
  return resize_bicubic(image,
                        {.width_px = scaled(image.width_px), .height_px = scaled(image.height_px)},
                        ImageBackend::kPil);
}

Canvas scene_panel(const Image& image, const std::vector<DrawnObject>& objects, int long_side_px,
                   const std::vector<std::pair<int, int>>& links) {
  Canvas canvas(scale_to(image, long_side_px));
  const bool is_large = long_side_px >= kLargeSidePx;
  const int thickness = is_large ? 4 : 2;
  std::vector<std::vector<Point>> outlines;
  for (const DrawnObject& object : objects)
    outlines.push_back(vertices_px(object.geometry, canvas.width_px(), canvas.height_px()));
  for (size_t i = 0; i < objects.size(); ++i)
    canvas.outline(outlines[i], objects[i].color, thickness);
  for (const auto& [a, b] : links)
    canvas.line(centre(outlines[a]), centre(outlines[b]), kMatchColor, thickness);
  std::vector<Area> taken;
  for (size_t i = 0; i < objects.size(); ++i)
    draw_label(canvas, outlines[i], objects[i], is_large ? kLargeTextPx : kTextPx, taken);
  return canvas;
}

Canvas blank_panel(const std::string& reason, int long_side_px) {
  Canvas canvas(long_side_px, long_side_px / 2, {200, 202, 206});
  canvas.text(kGap, long_side_px / 4 - kTextPx, shorten(reason, long_side_px - 2 * kGap), kInk,
              kTextPx);
  return canvas;
}

Canvas sheet_of(const std::vector<std::pair<std::string, Canvas>>& panels, int num_columns,
                const std::vector<LegendEntry>& legend) {
  REMATCH_CHECK(!panels.empty() && num_columns >= 1, "a sheet has panels");
  const int columns = std::min(num_columns, static_cast<int>(panels.size()));
  const int rows = (static_cast<int>(panels.size()) + columns - 1) / columns;
  const int caption = text_height(kTextPx) + kPad;
  int width = 0;
  std::vector<int> heights(static_cast<size_t>(rows), 0);
  for (size_t i = 0; i < panels.size(); ++i) {
    int& height = heights[i / static_cast<size_t>(columns)];
    width = std::max(width, panels[i].second.width_px());
    height = std::max(height, panels[i].second.height_px());
  }
  const int panels_top = legend.empty() ? kGap : 2 * kGap + text_height(kTextPx);
  int total = panels_top;
  for (const int height : heights) total += caption + height + kGap;
  Canvas sheet(kGap + columns * (width + kGap), total, kPaper);
  draw_legend(sheet, legend);
  int top = panels_top;
  for (size_t i = 0; i < panels.size(); ++i) {
    const int left = kGap + static_cast<int>(i % static_cast<size_t>(columns)) * (width + kGap);
    sheet.text(left, top, shorten(panels[i].first, width), kInk, kTextPx);
    sheet.paste(panels[i].second.image(), left, top + caption);
    if ((i + 1) % static_cast<size_t>(columns) == 0)
      top += caption + heights[i / static_cast<size_t>(columns)] + kGap;
  }
  return sheet;
}

}  // namespace rematch
