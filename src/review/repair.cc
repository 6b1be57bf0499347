#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "data/record.h"
#include "review/review.h"
#include "vision/image.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// The numbers of a geometry, flat or in pairs.
std::vector<Json*> numbers_of(Json& geometry) {
  std::vector<Json*> numbers;
  if (!geometry.is_array()) return numbers;
  for (Json& item : geometry) {
    if (item.is_array()) {
      for (Json& inner : item) numbers.push_back(&inner);
    } else {
      numbers.push_back(&item);
    }
  }
  return numbers;
}

Json* geometry_of(Json& object) {
  for (const char* key : {"bbox_2d", "poly"}) {
    if (const auto found = object.find(key); found != object.end()) return &*found;
  }
  return nullptr;
}

/// Whether a coordinate cannot be a bin: a fraction, or beyond 999.
bool has_pixels(Json& record) {
  for (Json& object : record["objects"]) {
    Json* geometry = object.is_object() ? geometry_of(object) : nullptr;
    if (geometry == nullptr) continue;
    for (const Json* number : numbers_of(*geometry)) {
      if (!number->is_number()) continue;
      const double value = number->get<double>();
      if (value >= kNumBins || value != std::floor(value)) return true;
    }
  }
  return false;
}

/// Mends one record. @return false when its image cannot be used
class Mender {
 public:
  Mender(std::string from_dir, fs::path to_dir, bool all_pixels, Repairs& repairs)
      : from_dir_(std::move(from_dir)), to_dir_(std::move(to_dir)), all_pixels_(all_pixels), repairs_(repairs) {}

  bool mend(Json& record) {
    if (!record.is_object() || !record.contains("objects") || !record["objects"].is_array())
      return drop("records that are damaged left out");
    if (!mend_image(record)) return drop("records whose image cannot be read left out");
    for (Json& object : record["objects"]) rename_bbox(object);
    if (all_pixels_ || has_pixels(record)) to_bins(record);
    Json kept = Json::array();
    std::set<std::string> seen;
    for (Json& object : record["objects"]) {
      if (!mend_box(object)) continue;
      if (seen.insert(object.dump()).second) {
        kept.push_back(object);
      } else {
        ++repairs_["repeated objects left out"];
      }
    }
    record["objects"] = std::move(kept);
    return true;
  }

 private:
  bool drop(const char* what) {
    ++repairs_[what];
    return false;
  }

  bool mend_image(Json& record) {
    const auto images = record.find("images");
    if (images == record.end() || !images->is_array() || images->size() != 1 || !(*images)[0].is_string()) return false;
    const std::string path = join_path(from_dir_, (*images)[0].get<std::string>());
    try {
      const ImageSize size = read_image_size(path);
      if (record.value("width", Json()) != size.width_px || record.value("height", Json()) != size.height_px)
        ++repairs_["sizes taken from the file"];
      record["width"] = size.width_px;
      record["height"] = size.height_px;
    } catch (const UserError&) {
      return false;
    }
    record["images"] = {fs::absolute(path).lexically_normal().lexically_proximate(to_dir_).string()};
    return true;
  }

  void rename_bbox(Json& object) {
    if (!object.is_object() || !object.contains("bbox") || object.contains("bbox_2d")) return;
    object["bbox_2d"] = object["bbox"];
    object.erase("bbox");
    ++repairs_["\"bbox\" renamed to \"bbox_2d\""];
  }

  void to_bins(Json& record) {
    ++repairs_["records whose pixels became bins"];
    for (Json& object : record["objects"]) {
      Json* geometry = object.is_object() ? geometry_of(object) : nullptr;
      if (geometry == nullptr) continue;
      size_t i = 0;
      for (Json* number : numbers_of(*geometry)) {
        const double side = record[i++ % 2 == 0 ? "width" : "height"].get<double>();
        if (number->is_number())
          *number = static_cast<int>(std::clamp(std::round(kNumBins * number->get<double>() / side), 0.0, kNumBins - 1.0));
      }
    }
  }

  /// Puts corners in order. @return false for a box without area
  bool mend_box(Json& object) {
    const auto box = object.is_object() ? object.find("bbox_2d") : object.end();
    if (!object.is_object() || box == object.end() || !box->is_array() || box->size() != 4) return true;
    for (const Json& number : *box) {
      if (!number.is_number()) return true;
    }
    Json& sides = *box;
    for (const size_t low : {size_t{0}, size_t{1}}) {
      if (sides[low].get<double>() == sides[low + 2].get<double>()) return drop("boxes without area left out");
    }
    bool swapped = false;
    for (const size_t low : {size_t{0}, size_t{1}}) {
      if (sides[low].get<double>() < sides[low + 2].get<double>()) continue;
      std::swap(sides[low], sides[low + 2]);
      swapped = true;
    }
    if (swapped) ++repairs_["swapped corners put in order"];
    return true;
  }

  std::string from_dir_;
  fs::path to_dir_;
  bool all_pixels_;
  Repairs& repairs_;
};

}  // namespace

Repairs write_repaired(const std::string& path, const std::string& out, const Review& review) {
  const std::string parent = fs::path(path).parent_path().string(), bytes = read_file(path);
  const fs::path target = fs::absolute(out).lexically_normal().parent_path();
  Repairs repairs;
  Mender mender(parent.empty() ? "." : parent, target, review.looks_like_pixels, repairs);
  std::string lines;
  for (const std::string& line : split(bytes, '\n')) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      Json record = parse_json(line, path);
      if (!mender.mend(record)) continue;
      const std::string mended = python_json(record);
      read_record(mended, {.where = path, .directory = target.string()});
      lines += mended + "\n";
    } catch (const UserError&) {
      ++repairs["records that are damaged left out"];
    }
  }
  make_directories(target.string());
  write_file_atomic(out, lines);
  return repairs;
}

}  // namespace rematch
