#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/keep_source.h"
#include "base/out_of_resources.h"
#include "base/text.h"
#include "data/record.h"
#include "review/added_texts.h"
#include "review/pixel_evidence.h"
#include "review/review.h"
#include "vision/image.h"
#include "vision/smart_resize.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDescKeys[] = {"label", "category", "name",
                                     "class", "caption",  "description"};

/// Whether a "bbox" can hold left, top, right and bottom: width and height often are less than left
/// and top.
bool is_left_top_right_bottom(const Json& box) {
  if (!box.is_array() || box.size() != 4) return false;
  for (const Json& side : box) {
    if (!side.is_number()) return false;
  }
  return box[0].get<double>() < box[2].get<double>() && box[1].get<double>() < box[3].get<double>();
}

/// Mends records in two passes: prepare() each, then finish() each with what the whole file tells.
class Mender {
 public:
  Mender(std::string from_dir, fs::path to_dir, Repairs& repairs)
      : from_dir_(std::move(from_dir)), to_dir_(std::move(to_dir)), repairs_(repairs) {}

  /// @return false when its image cannot be used
  bool prepare(Json& record) {
    if (!record.is_object() || !record.contains("objects") || !record["objects"].is_array())
      return drop("left out: records that are damaged");
    if (!mend_image(record)) return drop("left out: records whose image cannot be used");
    for (Json& object : record["objects"]) {
      if (!object.is_object()) continue;
      rename_desc(object);
      if (object.contains("bbox") && !is_left_top_right_bottom(object["bbox"]))
        boxes_have_other_sides_ = true;
    }
    return true;
  }

  /// Between the passes. After it, "bbox" is "bbox_2d" everywhere or nowhere.
  void look_at(Json& record) {
    if (!boxes_have_other_sides_) {
      for (Json& object : record["objects"]) rename_bbox(object);
    }
    evidence_.add(record);
  }

  /// @return false when a "bbox" of it cannot be read
  bool finish(Json& record) {
    for (const Json& object : record["objects"]) {
      if (object.is_object() && object.contains("bbox"))
        return drop(
            "left out: records with \"bbox\", because some of the file are no left, top, right, "
            "bottom (COCO's are x, y, width, height)");
    }
    if (evidence_.is_pixels() || facts_of(record).are_pixels()) {
      to_bins(record);
    } else {
      lower_thousands(record);
    }
    Json kept = Json::array();
    std::set<std::string> seen;
    for (Json& object : record["objects"]) {
      if (!mend_box(object)) continue;
      if (seen.insert(object.dump()).second) {
        kept.push_back(object);
      } else {
        ++repairs_["left out: repeated objects"];
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
    if (images == record.end() || !images->is_array() || images->size() != 1 ||
        !(*images)[0].is_string())
      return false;
    const std::string path = join_path(from_dir_, (*images)[0].get<std::string>());
    try {
      const ImageSize size = read_image_size(path);
      // refuses what is too long and thin
      smart_resize({.height_px = size.height_px, .width_px = size.width_px}, {}, path);
      if (record.value("width", Json()) != size.width_px ||
          record.value("height", Json()) != size.height_px)
        ++repairs_["sizes taken from the file"];
      record["width"] = size.width_px;
      record["height"] = size.height_px;
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      return false;
    }
    record["images"] = {
        fs::absolute(path).lexically_normal().lexically_proximate(to_dir_).string()};
    return true;
  }

  void rename_desc(Json& object) {
    for (const char* key : kDescKeys) {
      if (object.contains("desc") || !object.contains(key) || !object[key].is_string()) continue;
      object["desc"] = object[key];
      object.erase(key);
      ++repairs_[fmt::format("\"{}\" renamed to \"desc\"", key)];
    }
  }

  void rename_bbox(Json& object) {
    if (!object.is_object() || !object.contains("bbox") || object.contains("bbox_2d")) return;
    object["bbox_2d"] = object["bbox"];
    object.erase("bbox");
    ++repairs_["\"bbox\" renamed to \"bbox_2d\", read as left, top, right, bottom"];
  }

  void to_bins(Json& record) {
    ++repairs_["records whose pixels became bins"];
    for (Json& object : record["objects"]) {
      Json* geometry = geometry_of(object);
      if (geometry == nullptr) continue;
      size_t i = 0;
      for (Json* number : values_of(*geometry)) {
        const double side = record[i++ % 2 == 0 ? "width" : "height"].get<double>();
        if (number->is_number())
          *number = static_cast<int>(
              std::clamp(std::round(kNumBins * number->get<double>() / side), 0.0, kNumBins - 1.0));
      }
    }
  }

  /// 1000 thousandths are the far edge where others write 0 … 1000: the last bin.
  void lower_thousands(Json& record) {
    for (Json& object : record["objects"]) {
      Json* geometry = geometry_of(object);
      if (geometry == nullptr) continue;
      for (Json* number : values_of(*geometry)) {
        if (!number->is_number() || number->get<double>() != kNumBins) continue;
        *number = kNumBins - 1;
        ++repairs_["coordinates of 1000 became 999"];
      }
    }
  }

  /// Puts corners in order. @return false for a box without area
  bool mend_box(Json& object) {
    const auto box = object.is_object() ? object.find("bbox_2d") : object.end();
    if (!object.is_object() || box == object.end() || !box->is_array() || box->size() != 4)
      return true;
    for (const Json& number : *box) {
      if (!number.is_number()) return true;
    }
    Json& sides = *box;
    for (const size_t low : {size_t{0}, size_t{1}}) {
      if (sides[low].get<double>() == sides[low + 2].get<double>())
        return drop("left out: boxes without area");
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
  Repairs& repairs_;
  PixelEvidence evidence_;
  bool boxes_have_other_sides_ = false;
};

/// The records that have an image, renamed but not yet mended.
std::vector<Json> prepared_records(const std::string& path, Mender& mender, Repairs& repairs) {
  std::vector<Json> records;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      Json record = parse_json(line, path);
      if (mender.prepare(record)) records.push_back(std::move(record));
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      ++repairs["left out: records that are damaged"];
    }
  }
  for (Json& record : records) mender.look_at(record);
  return records;
}

[[noreturn]] void refuse_empty_copy(const std::string& path, const Repairs& repairs) {
  std::vector<std::string> reasons;
  for (const auto& [what, count] : repairs) reasons.push_back(fmt::format("{} {}", count, what));
  throw UserError(
      ErrorKind::kData,
      {.error = "no record is left: nothing is written",
       .where = path,
       .what = reasons.empty() ? "it has no records" : join(reasons, "; "),
       .fix =
           "mend the records by hand, or convert them with `rematch data from-…` (docs/data.md)"});
}

}  // namespace

Repairs write_repaired(const std::string& path, const std::string& out,
                       const std::vector<std::string>& added_tokens) {
  keep_source(path, out);
  const std::string parent = fs::path(path).parent_path().string();
  const fs::path target = fs::absolute(out).lexically_normal().parent_path();
  const ForbiddenTexts forbidden = forbidden_texts(added_tokens);
  Repairs repairs;
  Mender mender(parent.empty() ? "." : parent, target, repairs);
  std::string lines;
  for (Json& record : prepared_records(path, mender, repairs)) {
    if (!mender.finish(record)) continue;
    try {
      const std::string mended = python_json(record);
      read_record(mended, {.where = path, .directory = target.string(), .forbidden = &forbidden});
      lines += mended + "\n";
    } catch (const UserError& error) {
      ++repairs["left out: records, because " + error.problems().front().error];
    }
  }
  if (lines.empty()) refuse_empty_copy(path, repairs);
  make_directories(target.string());
  write_file_atomic(out, lines);
  return repairs;
}

}  // namespace rematch
