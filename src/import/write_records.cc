#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/path_from.h"
#include "base/text.h"
#include "flow/sample.h"
#include "import/foreign.h"
#include "import/usable_image.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr double kSlack = 0.002;  // of a side: what rounding explains is not counted as cut

/// Trimmed, on one line; empty when it cannot be a name.
std::string desc_of(std::string text) {
  if (!is_valid_utf8(text)) return "";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return python_strip(text);
}

/// The reason why an object cannot be part of a record, or null. @param width, height  of the image
/// in the object's unit. @param may_be_flat  boxes without area are kept
const char* unusable(const ForeignObject& object, double width, double height, bool may_be_flat) {
  const auto& [desc, x0, y0, x1, y1, ring] = object;
  const auto is_finite = [](const std::array<double, 2>& vertex) {
    return std::isfinite(vertex[0]) && std::isfinite(vertex[1]);
  };
  if (!is_finite({x0, y0}) || !is_finite({x1, y1}) ||
      !std::all_of(ring.begin(), ring.end(), is_finite))
    return "left out: boxes whose corners are not finite";
  if (desc_of(desc).empty()) return "left out: objects without a usable name";
  if (x1 < x0 || y1 < y0)
    return "left out: boxes with swapped corners or of negative width or height";
  if (may_be_flat) return nullptr;
  if (x0 >= width || y0 >= height || x1 <= 0 || y1 <= 0)
    return "left out: boxes that lie outside their image";
  const bool is_flat =
      bin_of(x0, width) == bin_of(x1, width) || bin_of(y0, height) == bin_of(y1, height);
  return is_flat ? "left out: boxes without area" : nullptr;
}

/// The object in bins, or null when it is left out.
Json object_json(const ForeignObject& object, double width, double height, bool may_be_flat,
                 WrittenSet& written, WrittenSplit& split) {
  if (const char* reason = unusable(object, width, height, may_be_flat)) {
    ++written.notes[reason];
    return nullptr;
  }
  const double slack_x = kSlack * width, slack_y = kSlack * height;
  const bool outside = object.x0 < -slack_x || object.y0 < -slack_y ||
                       object.x1 > width + slack_x || object.y1 > height + slack_y;
  if (outside) ++written.notes["boxes cut at the image's edge"];
  Json json;
  json["desc"] = desc_of(object.desc);
  if (object.ring.empty()) {
    json["bbox_2d"] = {bin_of(object.x0, width), bin_of(object.y0, height),
                       bin_of(object.x1, width), bin_of(object.y1, height)};
    ++split.num_boxes;
  } else {
    json["poly"] = Json::array();
    for (const auto& [x, y] : object.ring) {
      json["poly"].push_back(bin_of(x, width));
      json["poly"].push_back(bin_of(y, height));
    }
    ++split.num_polygons;
  }
  ++split.classes[json["desc"].get<std::string>()];
  return json;
}

/// The record of an image.
Json record_json(const ForeignImage& image, const UsableImage& usable, const PathFrom& path_from,
                 WrittenSet& written, WrittenSplit& split) {
  Json record;
  record["images"] = {path_from(usable.path)};
  record["width"] = usable.size.width_px;
  record["height"] = usable.size.height_px;
  if (!image.prompt.empty()) record["prompt"] = image.prompt;
  record["objects"] = Json::array();
  const double unit = image.in_bins ? kNumBins : 1;
  const bool is_relative = image.is_relative || image.in_bins;
  const double width = is_relative ? unit : usable.size.width_px,
               height = is_relative ? unit : usable.size.height_px;
  for (const ForeignObject& object : image.objects) {
    Json json = object_json(object, width, height, image.in_bins, written, split);
    if (!json.is_null()) record["objects"].push_back(std::move(json));
  }
  if (record["objects"].empty() && (!image.objects.empty() || image.lost_objects))
    ++written.notes["empty scenes: all objects of the image were left out"];
  return record;
}

/// The lines of a split. @throws UserError (data) when it has none
std::string lines_of(const std::vector<ForeignImage>& images, const PathFrom& path_from,
                     ImageChooser& chooser, WrittenSet& written, WrittenSplit& split) {
  std::string lines;
  for (const ForeignImage& image : images) {
    throw_if_interrupted();
    const std::optional<UsableImage> usable = chooser.choose(image);
    if (!usable) continue;
    lines += python_json(record_json(image, *usable, path_from, written, split)) + "\n";
    ++split.num_images;
  }
  if (split.num_images == 0) chooser.refuse_split(images, split.path);
  return lines;
}

}  // namespace

int bin_of(double value, double side) {
  const double bin = std::round(kNumBins * value / side);
  return static_cast<int>(std::clamp(bin, 0.0, static_cast<double>(kNumBins - 1)));
}

WrittenSet write_records(const ForeignSet& set, const std::string& out_dir,
                         const ImportOptions& options) {
  WrittenSet written;
  written.notes = set.notes;
  InputFiles inputs = set.also_read;
  for (const std::string& source : set.sources) inputs.add(source);
  for (const auto& [name, images] : set.splits) {
    written.splits.push_back({.path = (fs::path(out_dir) / (name + ".jsonl")).string()});
    for (const ForeignImage& image : images) inputs.add(image.path);
  }
  for (const WrittenSplit& split : written.splits) inputs.refuse(split.path);
  std::vector<std::string> contents;
  std::vector<TurnedCopy> copies;
  const PathFrom path_from(out_dir);
  for (auto split = written.splits.begin(); const auto& [name, images] : set.splits) {
    ImageChooser chooser((fs::path(out_dir) / "upright" / name).string(), options, written);
    contents.push_back(lines_of(images, path_from, chooser, written, *split++));
    copies.insert(copies.end(), chooser.copies().begin(), chooser.copies().end());
  }
  for (const TurnedCopy& copy : copies) inputs.refuse(copy.path);
  written.examples.insert(written.examples.begin(), set.examples.begin(), set.examples.end());
  make_directories(out_dir);
  write_copies(copies);
  for (size_t i = 0; i < contents.size(); ++i)
    write_output(written.splits[i].path, inputs, contents[i]);
  return written;
}

}  // namespace rematch
