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
constexpr double kSlack = 0.002;  // of a side: smaller excess is rounding and not counted

/// Trims a name and puts it on one line; empty if it is not usable.
std::string clean_desc(std::string text) {
  if (!is_valid_utf8(text)) return "";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return python_strip(text);
}

/// The reason to leave an object out, or nullptr. @param width, height  image size in the object's
/// unit. @param may_be_flat  boxes without area are kept
const char* find_defect(const ForeignObject& object, double width, double height,
                        bool may_be_flat) {
  const auto& [desc, x0, y0, x1, y1, ring] = object;
  const auto is_finite = [](const std::array<double, 2>& vertex) {
    return std::isfinite(vertex[0]) && std::isfinite(vertex[1]);
  };
  if (!is_finite({x0, y0}) || !is_finite({x1, y1}) ||
      !std::all_of(ring.begin(), ring.end(), is_finite))
    return "left out: boxes whose corners are not finite";
  if (clean_desc(desc).empty()) return "left out: objects without a usable name";
  if (x1 < x0 || y1 < y0) return "left out: boxes with swapped corners or negative width or height";
  if (may_be_flat) return nullptr;
  if (x0 >= width || y0 >= height || x1 <= 0 || y1 <= 0)
    return "left out: boxes outside their image";
  const bool is_flat =
      to_bin(x0, width) == to_bin(x1, width) || to_bin(y0, height) == to_bin(y1, height);
  return is_flat ? "left out: boxes without area" : nullptr;
}

/// The JSON of an object in bins, or null if it is left out.
Json make_object(const ForeignObject& object, double width, double height, bool may_be_flat,
                 WrittenSet& written, WrittenSplit& split) {
  if (const char* reason = find_defect(object, width, height, may_be_flat)) {
    ++written.notes[reason];
    return nullptr;
  }
  const double slack_x = kSlack * width, slack_y = kSlack * height;
  const bool outside = object.x0 < -slack_x || object.y0 < -slack_y ||
                       object.x1 > width + slack_x || object.y1 > height + slack_y;
  if (outside) ++written.notes["boxes clipped to the image"];
  Json json;
  json["desc"] = clean_desc(object.desc);
  if (object.ring.empty()) {
    json["bbox_2d"] = {to_bin(object.x0, width), to_bin(object.y0, height),
                       to_bin(object.x1, width), to_bin(object.y1, height)};
    ++split.num_boxes;
  } else {
    json["poly"] = Json::array();
    for (const auto& [x, y] : object.ring) {
      json["poly"].push_back(to_bin(x, width));
      json["poly"].push_back(to_bin(y, height));
    }
    ++split.num_polygons;
  }
  ++split.classes[json["desc"].get<std::string>()];
  return json;
}

/// The JSON record of an image.
Json make_record(const ForeignImage& image, const UsableImage& usable, const PathFrom& path_from,
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
    Json json = make_object(object, width, height, image.in_bins, written, split);
    if (!json.is_null()) record["objects"].push_back(std::move(json));
  }
  if (record["objects"].empty() && (!image.objects.empty() || image.lost_objects))
    ++written.notes["empty scenes: all objects of the image were left out"];
  return record;
}

/// The JSONL of a split. @throws UserError (data) if it has no usable image
std::string make_lines(const std::vector<ForeignImage>& images, const PathFrom& path_from,
                       ImageChooser& chooser, WrittenSet& written, WrittenSplit& split) {
  std::string lines;
  for (const ForeignImage& image : images) {
    throw_if_interrupted();
    const std::optional<UsableImage> usable = chooser.choose(image);
    if (!usable) continue;
    lines += python_json(make_record(image, *usable, path_from, written, split)) + "\n";
    ++split.num_images;
  }
  if (split.num_images == 0) chooser.refuse_split(images, split.path);
  return lines;
}

}  // namespace

int to_bin(double value, double side) {
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
    contents.push_back(make_lines(images, path_from, chooser, written, *split++));
    copies.insert(copies.end(), chooser.copies().begin(), chooser.copies().end());
  }
  for (const TurnedCopy& copy : copies) inputs.refuse(copy.path);
  written.examples.insert(written.examples.begin(), set.examples.begin(), set.examples.end());
  make_directories(out_dir);
  write_copies(copies);
  for (size_t i = 0; i < contents.size(); ++i)
    written.splits[i].replaces_earlier = write_output(written.splits[i].path, inputs, contents[i]);
  return written;
}

}  // namespace rematch
