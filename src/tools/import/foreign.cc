#include "tools/import/foreign.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/import/values.h"

namespace rematch {

namespace {

/// True if an edge of a box is away from that of an outline by more than a quarter of its side and
/// two pixels, which are rounding.
bool are_far_apart(const std::array<double, 4>& box, const std::array<double, 4>& outline) {
  for (size_t i = 0; i < box.size(); ++i) {
    const double side = outline[i % 2 + 2] - outline[i % 2];
    if (std::abs(box[i] - outline[i]) > side / 4 + 2) return true;
  }
  return false;
}

}  // namespace

void ForeignImage::state_size(const Json& width, const Json& height) {
  const auto state = [this](int& side, const Json& stated) {
    if (stated.is_null() || stated == "") return;
    const std::optional<double> number = read_number(stated);
    if (!number)
      return leave_out(reason::kSizeUnreadable,
                       fmt::format("{}: a side of {}", where, show_json(stated)));
    if (*number < 1) return;
    constexpr double kMost = std::numeric_limits<int>::max();
    const int px = static_cast<int>(std::lround(std::min(*number, kMost)));
    if (side != 0 && side != px)
      leave_out(reason::kImageSize, fmt::format("{}: a side of {} and of {}", where, side, px));
    side = px;
  };
  state(width_px, width);
  state(height_px, height);
}

void ForeignImage::add(const ForeignEntry& entry, ForeignSet& set) {
  const ImportOptions& options = set.options;
  if (entry.skipped != nullptr) {
    has_crowds = true;
    doubtful.push_back(entry.name.value_or(""));
    return set.ledger.note(entry.skipped);
  }
  Outline points;
  bool is_whole = true;
  for (const Outline& ring : entry.rings) {
    is_whole = is_whole && !ring.empty();
    points.insert(points.end(), ring.begin(), ring.end());
  }
  is_whole = is_whole && points.size() >= 3;
  const std::string reason = !entry.reason.empty()     ? entry.reason
                             : !entry.box && !is_whole ? reason::kNoBox
                             : !entry.name             ? reason::kUnknownClass
                                                       : "";
  if (!reason.empty()) return lose(reason, entry.place);
  const BoxForm form = options.boxes.value_or(entry.form);
  const std::array<double, 4> box = entry.box ? to_corners(*entry.box, form) : extent_of(points);
  const auto [x0, y0, x1, y1] = box;
  if (form != BoxForm::kCorners && (x1 < x0 || y1 < y0)) return lose(reason::kSwapped, entry.place);
  if (entry.box && is_whole && !options.boxes && are_far_apart(box, extent_of(points)))
    return lose(reason::kOtherOutline, entry.place);
  ForeignObject object{.desc = *entry.name, .x0 = x0, .y0 = y0, .x1 = x1, .y1 = y1};
  if (options.polygons && entry.rings.size() == 1 && is_whole)
    object.ring = points;
  else if (!entry.rings.empty() && (options.polygons || !entry.box))
    set.ledger.note("outlines replaced by their boxes (--polygons keeps those of one ring)");
  objects.push_back(std::move(object));
}

}  // namespace rematch
