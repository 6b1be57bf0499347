#include "tools/import/source_files.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "tools/import/image_files.h"

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

/// True for a number of degrees, also with a unit ("30 deg"); words such as "front" are none.
bool is_turned(const Json& angle) {
  const std::optional<double> number = read_number(angle);
  return number ? *number != 0 : angle.dump().find_first_of("123456789") != std::string::npos;
}

/// True for a flag such as COCO's `iscrowd`: true, a number above 0 (OpenImages writes -1 for
/// unknown), also as text, or "yes".
bool is_set(const Json& flag) {
  constexpr const char* kYes[] = {"true", "yes", "y", "t", "on"};
  if (flag.is_boolean()) return flag.get<bool>();
  if (const std::optional<double> number = read_number(flag)) return *number > 0;
  return flag.is_string() && is_among(flag.get<std::string>(), kYes);
}

bool is_below_1(const Json& score) { return read_number(score).value_or(1) < 1; }

/// One outline of points, or a list of outlines.
std::vector<Outline> read_rings(const Json& value) {
  if (Outline ring = read_points(value); !ring.empty()) return {std::move(ring)};
  std::vector<Outline> rings;
  for (const Json& ring : value) rings.push_back(read_points(ring));
  return rings;
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

void read_marks(const Json& value, ForeignEntry& entry, Ledger& ledger) {
  const auto has = [&](std::initializer_list<const char*> keys, bool (*fits)(const Json&)) {
    return std::ranges::any_of(keys, [&](const char* key) {
      for (const Json* holder :
           {&value, &member(value, {"attributes"}), &member(value, {"flags"})}) {
        const Json& mark = member(*holder, {key});
        if (!mark.is_null() && mark != "" && fits(mark)) return true;
      }
      return false;
    });
  };
  if (has({"iscrowd", "is_crowd", "isgroupof"}, is_set)) entry.skipped = kCrowd;
  if (has({"ignore"}, is_set)) entry.skipped = "objects marked to be ignored, left out";
  if (has({"difficult"}, is_set)) ledger.note("objects marked difficult, kept");
  if (has({"score", "confidence"}, is_below_1))
    ledger.note("objects with a score (predictions?), kept as truth");
  if (entry.box && has({"rotation", "angle", "theta"}, is_turned)) entry.reason = reason::kRotated;
}

void set_points(ForeignEntry& entry, const Outline& points) {
  if (points.size() == 2) entry.box = {points[0][0], points[0][1], points[1][0], points[1][1]};
  if (points.size() >= 4) entry.rings = {points};
}

ForeignEntry read_entry(const Json& value, std::string place, BoxForm form, Ledger& ledger) {
  ForeignEntry entry{.place = std::move(place)};
  const Json &box = member(value, {"bbox_2d", "bbox", "box", "bboxes", "boxes"}),
             &points = member(value, {"points"}), &mask = member(value, {"segmentation"}),
             &outline = member(value, {"segmentation", "points", "poly_2d", "poly", "polygon",
                                       "polygon_2d", "quad"});
  const bool has_box = !box.empty();
  set_points(entry, read_points(box));
  entry.form = has_box && box.front().is_array() ? BoxForm::kCorners : form;
  if (has_box && !entry.box && entry.rings.empty()) entry.reason = reason::kNoBox;
  if (has_box && box.size() == 5) entry.reason = reason::kRotated;
  read_marks(value, entry, ledger);
  // "points" of an entry with a box may be points in it
  if (outline.is_array() && (!has_box || &outline == &mask)) entry.rings = read_rings(outline);
  // three "points" may be three things to point at
  const size_t fewest = &outline == &points ? 4 : 3;
  if (!entry.box && entry.rings.size() == 1 && entry.rings[0].size() < fewest)
    entry.reason = reason::kNoBox;
  return entry;
}

const Json& name_member(const Json& entry, std::initializer_list<const char*> keys,
                        Ledger& ledger) {
  const Json& name = member(entry, keys);
  for (const char* key : keys) {
    const Json& other = member(entry, {key});
    if (other.is_string() && name.is_string() && other != name)
      ledger.note(fmt::format("other names of named objects (\"{}\"), left out", key));
  }
  return name;
}

}  // namespace rematch
