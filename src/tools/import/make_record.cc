#include "tools/import/make_record.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/flow/clip_outline.h"
#include "base/json.h"
#include "base/text.h"
#include "learn/data/added_texts.h"
#include "tools/import/check_units.h"
#include "tools/import/geometry.h"
#include "tools/import/reasons.h"

namespace rematch {
namespace {

constexpr double kSlack = 0.002;  // of a side: smaller excess is rounding and not counted

/// Trims a name and puts it on one line; empty if it is not usable.
std::string clean_desc(std::string text) {
  if (!is_valid_utf8(text)) return "";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return python_strip(text);
}

/// Converts the objects of one image to bins.
class ObjectMaker {
 public:
  ObjectMaker(const ForeignImage& image, const NumberScale& scale)
      : is_answer_(image.unit == CoordUnit::kAnswer),
        width_(scale.x),
        height_(scale.y),
        scale_(scale) {}

  bool was_clipped() const { return was_clipped_; }
  bool was_flat() const { return was_flat_; }

  /// The member and bins of a geometry.
  /// @param reason  receives why there is none
  std::optional<std::pair<const char*, std::vector<int>>> make(const ForeignObject& object,
                                                               const char*& reason) {
    reason = find_defect(object);
    if (reason != nullptr) return std::nullopt;
    const bool is_box = object.ring.empty();
    std::vector<int> bins = is_box ? box_bins(object) : ring_bins(object.ring);
    reason = bins.empty()                   ? reason::kOutside
             : !is_answer_ && is_flat(bins) ? reason::kThin
                                            : nullptr;
    if (reason != nullptr) return std::nullopt;
    was_flat_ = is_flat(bins);
    return std::pair(is_box ? "bbox_2d" : "poly", std::move(bins));
  }

 private:
  const char* find_defect(const ForeignObject& object) {
    if (const char* bad = find_bad_corner(object)) return bad;
    const auto& [desc, x0, y0, x1, y1, ring] = object;
    if (is_answer_ && (x0 < 0 || y0 < 0 || x1 > width_ || y1 > height_))
      return reason::kBeyondScale;
    if (width_ > 1 && x1 <= 1 && y1 <= 1 && (x1 != std::floor(x1) || y1 != std::floor(y1)))
      return reason::kShares;
    // [0, 0, 0, 0] is how many answers say "not there"
    if (is_answer_) return x0 == y0 && y0 == x1 && x1 == y1 ? reason::kNoArea : nullptr;
    if (x0 == x1 || y0 == y1) return reason::kNoArea;
    if (x0 >= width_ || y0 >= height_ || x1 <= 0 || y1 <= 0) return reason::kOutside;
    const double slack_x = kSlack * width_, slack_y = kSlack * height_;
    was_clipped_ =
        x0 < -slack_x || y0 < -slack_y || x1 > width_ + slack_x || y1 > height_ + slack_y;
    return nullptr;
  }

  std::vector<int> box_bins(const ForeignObject& box) const {
    return {scale_.bin(box.x0, 0), scale_.bin(box.y0, 1), scale_.bin(box.x1, 0),
            scale_.bin(box.y1, 1)};
  }

  /// Bins of the part of an outline inside the image; empty if nothing is left of it.
  std::vector<int> ring_bins(const Outline& ring) const {
    std::vector<int> bins;
    const Outline inside = clip_outline(ring, {0, 0}, {width_, height_});
    for (const auto& [x, y] : inside) {
      const int values[] = {scale_.bin(x, 0), scale_.bin(y, 1)};
      const bool repeats = inside.size() != ring.size() && bins.size() >= 2 &&
                           bins[bins.size() - 2] == values[0] && bins.back() == values[1];
      if (!repeats) bins.insert(bins.end(), {values[0], values[1]});
    }
    return bins.size() < 6 ? std::vector<int>() : bins;
  }

  static bool is_flat(const std::vector<int>& bins) {
    int low[] = {kNumBins, kNumBins}, high[] = {-1, -1};
    for (size_t i = 0; i < bins.size(); ++i) {
      low[i % 2] = std::min(low[i % 2], bins[i]);
      high[i % 2] = std::max(high[i % 2], bins[i]);
    }
    return low[0] == high[0] || low[1] == high[1];
  }

  bool is_answer_;
  double width_, height_;
  NumberScale scale_;
  bool was_clipped_ = false, was_flat_ = false;
};

}  // namespace

RecordMaker::RecordMaker(const PathFrom& path_from, const ImportOptions& options, Ledger& ledger)
    : path_from_(path_from), options_(options), ledger_(ledger), forbidden_(forbidden_texts({})) {}

std::optional<std::string> RecordMaker::make(const ForeignImage& image, const UsableImage& usable,
                                             WrittenSplit& split) {
  if (image.defect) {
    ledger_.lose_record(image.defect->reason, image.defect->place);
    return std::nullopt;
  }
  std::vector<LostObject> lost = image.lost;
  ObjectMaker maker(image, coordinate_scale(image, usable, options_));
  Json objects = Json::array();
  int64_t num_polygons = 0, num_clipped = 0, num_flat = 0;
  for (size_t i = 0; i < image.objects.size(); ++i) {
    const ForeignObject& object = image.objects[i];
    const std::string& name = object.desc.empty() ? options_.label : object.desc;
    const std::string desc = clean_desc(name);
    const char* reason = name.empty()                          ? reason::kNoName
                         : desc.empty()                        ? reason::kBadName
                         : forbidden_.find_in(desc) != nullptr ? reason::kTokenInName
                                                               : nullptr;
    auto geometry = reason == nullptr ? maker.make(object, reason) : std::nullopt;
    if (!geometry) {
      lost.push_back({reason, fmt::format("{}: object {}", image.where, i + 1)});
      continue;
    }
    num_clipped += maker.was_clipped();
    num_flat += maker.was_flat();
    num_polygons += !object.ring.empty();
    objects.push_back({{"desc", desc}, {geometry->first, std::move(geometry->second)}});
  }
  if (objects.size() > kMaxItems) lost.push_back({reason::kTooMany, image.where});
  if (forbidden_.find_in(image.prompt) != nullptr)
    lost.insert(lost.begin(), {reason::kTokenInPrompt, image.where});
  const bool is_kept = lost.empty() || (options_.drop_unreadable && !objects.empty() &&
                                        objects.size() <= kMaxItems &&
                                        lost.front().reason != reason::kTokenInPrompt);
  if (!is_kept) {
    ledger_.lose_record(lost.front().reason, lost.front().place);
    return std::nullopt;
  }
  for (const LostObject& each : lost) ledger_.lose_object(each.reason, each.place);
  if (num_flat > 0) ledger_.note("boxes without width or height in answers, kept", num_flat);
  if (num_clipped > 0) ledger_.note("objects clipped to the image", num_clipped);
  split.num_polygons += num_polygons;
  split.num_boxes += std::ssize(objects) - num_polygons;
  for (const Json& object : objects) ++split.classes[object["desc"].get<std::string>()];
  Json record;
  record["images"] = {path_from_(usable.path)};
  record["width"] = usable.size.width_px;
  record["height"] = usable.size.height_px;
  if (!image.prompt.empty()) record["prompt"] = image.prompt;
  record["objects"] = std::move(objects);
  if (!image.extra.empty()) {
    const Json extra = parse_json(image.extra, image.where);
    for (const auto& member : extra.items()) record[member.key()] = member.value();
  }
  return json_line(record);
}

}  // namespace rematch
