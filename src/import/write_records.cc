#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "flow/sample.h"
#include "import/foreign.h"
#include "vision/image.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
constexpr size_t kMaxExamples = 5;
constexpr double kSlack = 0.002;  // of a side: what rounding explains is not counted as cut

/// Trimmed, on one line, never blank.
std::string desc_of(std::string text) {
  if (!is_valid_utf8(text)) return "object";
  std::replace_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  text = python_strip(text);
  return text.empty() ? "object" : text;
}

/// The object in bins, or null when nothing of it is left.
Json object_json(const ForeignObject& object, double width, double height, WrittenSet& written, WrittenSplit& split) {
  const double slack_x = kSlack * width, slack_y = kSlack * height;
  const bool outside = object.x0 < -slack_x || object.y0 < -slack_y || object.x1 > width + slack_x || object.y1 > height + slack_y;
  const int x0 = bin_of(object.x0, width), y0 = bin_of(object.y0, height), x1 = bin_of(object.x1, width), y1 = bin_of(object.y1, height);
  if (x1 <= x0 || y1 <= y0) {
    ++written.notes["boxes without area left out"];
    return nullptr;
  }
  if (outside) ++written.notes["boxes cut at the image's edge"];
  Json json;
  json["desc"] = desc_of(object.desc);
  if (object.ring.empty()) {
    json["bbox_2d"] = {x0, y0, x1, y1};
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

/// Size of the file, if it can be used; else counts and names it.
std::optional<ImageSize> usable_size(const ForeignImage& image, WrittenSet& written) {
  ImageSize size{};
  std::string reason;
  try {
    size = read_image_size(image.path);
  } catch (const UserError& error) {
    reason = error.problems().front().error;
  }
  const bool differs = reason.empty() && image.width_px > 0 && image.height_px > 0 &&
                       !(size == ImageSize{.width_px = image.width_px, .height_px = image.height_px});
  if (differs)
    reason = fmt::format("it is {} x {}, the annotation says {} x {}", size.width_px, size.height_px, image.width_px, image.height_px);
  if (reason.empty()) return size;
  ++written.notes[differs ? "images of another size than annotated left out" : "images that cannot be read left out"];
  if (written.examples.size() < kMaxExamples) written.examples.push_back(fmt::format("{}: {}", image.path, reason));
  return std::nullopt;
}

}  // namespace

int bin_of(double value, double side) {
  const double bin = std::round(kNumBins * value / side);
  return static_cast<int>(std::clamp(bin, 0.0, static_cast<double>(kNumBins - 1)));
}

WrittenSet write_records(const ForeignSet& set, const std::string& out_dir) {
  WrittenSet written;
  written.notes = set.notes;
  make_directories(out_dir);
  const fs::path base = fs::absolute(out_dir).lexically_normal();
  for (const auto& [name, images] : set.splits) {
    WrittenSplit split{.path = (fs::path(out_dir) / (name + ".jsonl")).string()};
    std::string lines;
    for (const ForeignImage& image : images) {
      const std::optional<ImageSize> size = usable_size(image, written);
      if (!size) continue;
      Json record;
      record["images"] = {fs::absolute(image.path).lexically_normal().lexically_proximate(base).string()};
      record["width"] = size->width_px;
      record["height"] = size->height_px;
      record["objects"] = Json::array();
      const double width = image.is_relative ? 1 : size->width_px, height = image.is_relative ? 1 : size->height_px;
      for (const ForeignObject& object : image.objects) {
        Json json = object_json(object, width, height, written, split);
        if (!json.is_null()) record["objects"].push_back(std::move(json));
      }
      lines += python_json(record) + "\n";
      ++split.num_images;
    }
    if (split.num_images > 0) {
      write_file_atomic(split.path, lines);
      written.splits.push_back(std::move(split));
    }
  }
  if (written.splits.empty()) {
    throw UserError(ErrorKind::kData, {.error = "no image of this data set can be used",
                                       .where = out_dir,
                                       .what = written.examples.empty() ? "it lists none" : written.examples.front(),
                                       .fix = "pass the directory of the images with --images"});
  }
  return written;
}

}  // namespace rematch
