#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "learn/data/added_texts.h"
#include "tools/import/write_steps.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr double kSlack = 0.002;  // of a side: smaller excess is rounding and not counted

/// Trims a name and puts it on one line; empty if it is not usable.
std::string clean_desc(std::string text) {
  if (!is_valid_utf8(text)) return "";
  std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return python_strip(text);
}

/// The reason why an object cannot be written in the numbers that it has; null for none.
const char* find_defect(const ForeignObject& object, double width, double height, bool is_answer) {
  const auto& [desc, x0, y0, x1, y1, ring] = object;
  for (const double number : {x0, y0, x1, y1}) {
    if (!std::isfinite(number)) return reason::kNoBox;
  }
  if (x1 < x0 || y1 < y0) return reason::kSwapped;
  if (is_answer && (x0 < 0 || y0 < 0 || x1 > width || y1 > height)) return reason::kBeyondScale;
  if (width > 1 && x1 <= 1 && y1 <= 1 && (x1 != std::floor(x1) || y1 != std::floor(y1)))
    return reason::kShares;
  // [0, 0, 0, 0] is how many answers say "not there"
  if (is_answer ? x0 == y0 && y0 == x1 && x1 == y1 : x0 == x1 || y0 == y1) return reason::kNoArea;
  const bool is_outside = x0 >= width || y0 >= height || x1 <= 0 || y1 <= 0;
  return !is_answer && is_outside ? reason::kOutside : nullptr;
}

/// The objects of a record.
struct MadeObjects {
  Json list = Json::array();
  int64_t num_polygons = 0, num_clipped = 0, num_flat = 0;

  /// @return why the object is not added; null if it is
  const char* add(const ForeignObject& object, const std::string& desc, const NumberScale& scale,
                  bool is_answer) {
    const auto& [name, x0, y0, x1, y1, ring] = object;
    const double width = scale.x, height = scale.y, slack_x = kSlack * width,
                 slack_y = kSlack * height;
    if (const char* reason = find_defect(object, width, height, is_answer)) return reason;
    const Outline inside =
        ring.empty() ? Outline{{x0, y0}, {x1, y1}} : clip_outline(ring, {0, 0}, {width, height});
    const bool is_cut = !ring.empty() && inside.size() != ring.size();
    std::vector<int> bins;
    std::set<int> xs, ys;
    for (const auto& [x, y] : inside) {
      const int bin_x = scale.bin(x, 0), bin_y = scale.bin(y, 1);
      const bool repeats =
          is_cut && !bins.empty() && bins[bins.size() - 2] == bin_x && bins.back() == bin_y;
      if (!repeats) bins.insert(bins.end(), {bin_x, bin_y});
      xs.insert(bin_x);
      ys.insert(bin_y);
    }
    const bool is_flat = xs.size() == 1 || ys.size() == 1;
    if (!ring.empty() && bins.size() < 6) return reason::kOutside;
    if (is_flat && !is_answer) return reason::kThin;
    num_clipped += !is_answer && (x0 < -slack_x || y0 < -slack_y || x1 > width + slack_x ||
                                  y1 > height + slack_y);
    num_flat += is_flat;
    num_polygons += !ring.empty();
    list.push_back({{"desc", desc}, {ring.empty() ? "bbox_2d" : "poly", std::move(bins)}});
    return nullptr;
  }
};

/// @throws UserError (data) with all losses
[[noreturn]] void refuse(const char* error, const std::string& where, const Ledger& ledger,
                         int64_t num_kept) {
  throw data_error({.error = error,
                    .where = where,
                    .what = ledger.has_losses()
                                ? ledger.summary(num_kept) + "; " + join(ledger.places(), "; ")
                                : "it has no image with box annotations",
                    .fix = ledger.fix() + "; nothing has been written"});
}

/// Two entries of one image would each lack the objects of the other. Equal ones are one.
void lose_repeated_images(ForeignSet& set) {
  for (auto& [split, images] : set.splits) {
    std::map<fs::path, size_t> first;  // by file, in `kept`
    ForeignImages kept;
    for (ForeignImage& image : images) {
      const bool has_file =
          !image.path.empty() && !(image.defect && image.defect->reason == reason::kImageAmbiguous);
      const auto [known, is_new] = first.try_emplace(
          has_file ? fs::path(image.path).lexically_normal() : fs::path(), kept.size());
      if (has_file && !is_new) {
        ForeignImage& earlier = kept[known->second];
        if (image.objects == earlier.objects && image.lost.empty() && earlier.lost.empty() &&
            image.defect.has_value() == earlier.defect.has_value()) {
          set.ledger.note("entries that repeat an image with the same objects");
          continue;
        }
        earlier.leave_out(reason::kTwoEntries, earlier.where);
        image.leave_out(reason::kTwoEntries, image.where);
      }
      kept.push_back(std::move(image));
    }
    images = std::move(kept);
  }
}

}  // namespace

RecordMaker::RecordMaker(const PathFrom& path_from, const ImportOptions& options, Ledger& ledger)
    : path_from_(path_from), options_(options), ledger_(ledger), forbidden_(forbidden_texts({})) {}

std::optional<std::string> RecordMaker::make(ForeignImage image, WrittenSplit& split) {
  if (image.has_crowds && image.objects.empty() && image.lost.empty())
    image.leave_out(reason::kCrowdsOnly, image.where);  // it shows objects that have no boxes
  if (image.objects.size() > kMaxItems) image.leave_out(reason::kTooMany, image.where);
  if (forbidden_.find_in(image.prompt) != nullptr)
    image.leave_out(reason::kAddedToken, image.where);
  MadeObjects made;
  const NumberScale scale = coordinate_scale(image, options_);
  const bool is_answer = image.unit == CoordUnit::kAnswer;
  for (size_t i = 0; i < image.objects.size(); ++i) {
    const ForeignObject& object = image.objects[i];
    const std::string& name = object.desc.empty() ? options_.label : object.desc;
    const std::string desc = clean_desc(name);
    const char* reason = name.empty()   ? (is_answer ? reason::kNoNameInAnswer : reason::kNoName)
                         : desc.empty() ? reason::kBadName
                         : forbidden_.find_in(desc) != nullptr
                             ? reason::kAddedToken
                             : made.add(object, desc, scale, is_answer);
    if (reason != nullptr) image.lose(reason, fmt::format("{}: object {}", image.where, i + 1));
  }
  const bool has_others = !image.defect && !made.list.empty();
  if (!image.lost.empty() && (!options_.drop_unreadable || made.list.empty()))
    image.leave_out(image.lost.front().reason, image.lost.front().place);
  if (image.defect) {
    ledger_.lose_record(image.defect->reason, image.defect->place, has_others);
    return std::nullopt;
  }
  for (const LostObject& each : image.lost) ledger_.lose_object(each.reason, each.place);
  ledger_.note("boxes without width or height in answers, kept", made.num_flat);
  ledger_.note("images without objects, imported as empty scenes", image.objects.empty());
  ledger_.note("objects clipped to the image", made.num_clipped);
  ++split.num_images;
  split.num_polygons += made.num_polygons;
  split.num_boxes += std::ssize(made.list) - made.num_polygons;
  for (const Json& object : made.list) ++split.classes[object["desc"].get<std::string>()];
  Json record;
  record["images"] = {path_from_(image.path)};
  record["width"] = image.size.width_px;
  record["height"] = image.size.height_px;
  if (!image.prompt.empty()) record["prompt"] = image.prompt;
  record["objects"] = std::move(made.list);
  if (!image.extra.empty()) {
    const Json extra = parse_json(image.extra, image.where);
    for (const auto& member : extra.items()) record[member.key()] = member.value();
  }
  return json_line(record);
}

int64_t WrittenSet::num_records() const {
  int64_t count = 0;
  for (const WrittenSplit& split : splits) count += split.num_images;
  return count;
}

WrittenSet write_records(ForeignSet set, const std::string& out_dir) {
  const ImportOptions& options = set.options;
  join_images(set);
  if (!set.repeats_images) lose_repeated_images(set);
  if (options.prompt_classes) add_class_prompts(set);
  WrittenSet written{.splits = {}, .ledger = set.ledger};
  InputFiles inputs = set.also_read;
  for (const std::string& source : set.sources) inputs.add(source);
  for (const auto& [name, images] : set.splits) {
    written.splits.push_back({.path = (fs::path(out_dir) / (name + ".jsonl"))});
    for (const ForeignImage& image : images) inputs.add(image.path);
  }
  for (const WrittenSplit& split : written.splits) inputs.refuse(split.path);
  const PathFrom path_from(out_dir);
  RecordMaker maker(path_from, options, written.ledger);
  Strings contents;
  for (auto split = written.splits.begin(); const auto& [name, images] : set.splits) {
    check_units(set, images, split->path);
    std::string& lines = contents.emplace_back();
    for (const ForeignImage& image : images) lines += maker.make(image, *split).value_or("");
    if (lines.empty())
      refuse("no record of this split can be used", split->path, written.ledger, 0);
    ++split;
  }
  if (options.strict && written.ledger.has_losses())
    refuse("something cannot be read, and --strict is set", out_dir, written.ledger,
           written.num_records());
  make_directories(out_dir);
  for (size_t i = 0; i < contents.size(); ++i)
    written.splits[i].replaces_earlier = write_output(written.splits[i].path, inputs, contents[i]);
  return written;
}

}  // namespace rematch
