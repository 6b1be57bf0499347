#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/out_of_resources.h"
#include "base/output_file.h"
#include "base/text.h"
#include "flow/sample.h"
#include "import/foreign.h"
#include "vision/image.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxExamples = 5;
constexpr double kSlack = 0.002;  // of a side: what rounding explains is not counted as cut

/// Trimmed, on one line; empty when it cannot be a name.
std::string desc_of(std::string text) {
  if (!is_valid_utf8(text)) return "";
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return python_strip(text);
}

/// Why an object cannot be a record's, or null. @param width, height  of the image in the object's
/// unit
const char* unusable(const ForeignObject& object, double width, double height) {
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
  if (x0 >= width || y0 >= height || x1 <= 0 || y1 <= 0)
    return "left out: boxes that lie outside their image";
  const bool is_flat =
      bin_of(x0, width) == bin_of(x1, width) || bin_of(y0, height) == bin_of(y1, height);
  return is_flat ? "left out: boxes without area" : nullptr;
}

/// The object in bins, or null when it is left out.
Json object_json(const ForeignObject& object, double width, double height, WrittenSet& written,
                 WrittenSplit& split) {
  if (const char* reason = unusable(object, width, height)) {
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

/// Size of the file, if it can be used; else counts and names it. @param reason  of the last that
/// could not
std::optional<ImageSize> usable_size(const ForeignImage& image, WrittenSet& written,
                                     std::string& reason) {
  ImageSize size{};
  std::string problem = is_valid_utf8(image.path) ? "" : "its name is not UTF-8";
  try {
    if (problem.empty()) size = read_image_size(image.path);
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    problem = error.problems().front().error;
  }
  const bool differs =
      problem.empty() && image.width_px > 0 && image.height_px > 0 &&
      !(size == ImageSize{.width_px = image.width_px, .height_px = image.height_px});
  if (differs)
    problem = fmt::format("it is {} x {}, the annotation says {} x {}", size.width_px,
                          size.height_px, image.width_px, image.height_px);
  if (problem.empty()) return size;
  ++written.notes[differs ? "left out: images of another size than annotated"
                          : "left out: images that cannot be read"];
  reason = fmt::format("{}: {}", image.path, problem);
  if (written.examples.size() < kMaxExamples) written.examples.push_back(reason);
  return std::nullopt;
}

/// The record of an image. @param base  directory of the JSONL
Json record_json(const ForeignImage& image, const ImageSize& size, const fs::path& base,
                 WrittenSet& written, WrittenSplit& split) {
  Json record;
  record["images"] = {
      fs::absolute(image.path).lexically_normal().lexically_proximate(base).string()};
  record["width"] = size.width_px;
  record["height"] = size.height_px;
  record["objects"] = Json::array();
  const double width = image.is_relative ? 1 : size.width_px,
               height = image.is_relative ? 1 : size.height_px;
  for (const ForeignObject& object : image.objects) {
    Json json = object_json(object, width, height, written, split);
    if (!json.is_null()) record["objects"].push_back(std::move(json));
  }
  if (record["objects"].empty() && !image.objects.empty())
    ++written.notes["empty scenes: all objects of the image were left out"];
  return record;
}

/// The lines of a split. @throws UserError (data) when it has none
std::string lines_of(const std::vector<ForeignImage>& images, const fs::path& base,
                     WrittenSet& written, WrittenSplit& split) {
  std::string lines, reason;
  for (const ForeignImage& image : images) {
    const std::optional<ImageSize> size = usable_size(image, written, reason);
    if (!size) continue;
    lines += python_json(record_json(image, *size, base, written, split)) + "\n";
    ++split.num_images;
  }
  if (split.num_images == 0) {
    throw UserError(
        ErrorKind::kData,
        {.error = "no image of this split can be used",
         .where = split.path,
         .what = reason.empty() ? "it lists no image that has annotations of boxes" : reason,
         .fix = "pass the directory of the images with --images, or leave this split out; nothing "
                "has been written"});
  }
  return lines;
}

}  // namespace

int bin_of(double value, double side) {
  const double bin = std::round(kNumBins * value / side);
  return static_cast<int>(std::clamp(bin, 0.0, static_cast<double>(kNumBins - 1)));
}

WrittenSet write_records(const ForeignSet& set, const std::string& out_dir) {
  WrittenSet written;
  written.notes = set.notes;
  const fs::path base = fs::absolute(out_dir).lexically_normal();
  InputFiles inputs;
  for (const std::string& source : set.sources) inputs.add(source);
  for (const auto& [name, images] : set.splits) {
    written.splits.push_back({.path = (fs::path(out_dir) / (name + ".jsonl")).string()});
    for (const ForeignImage& image : images) inputs.add(image.path);
  }
  for (const WrittenSplit& split : written.splits) inputs.refuse(split.path);
  std::vector<std::string> contents;
  for (auto split = written.splits.begin(); const auto& [name, images] : set.splits)
    contents.push_back(lines_of(images, base, written, *split++));
  make_directories(out_dir);
  for (size_t i = 0; i < contents.size(); ++i)
    write_output(written.splits[i].path, inputs, contents[i]);
  return written;
}

}  // namespace rematch
