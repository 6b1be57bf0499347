#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/out_of_resources.h"
#include "base/path_from.h"
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

bool are_four_numbers(const Json& box) {
  return box.is_array() && box.size() == 4 &&
         std::all_of(box.begin(), box.end(), [](const Json& side) { return side.is_number(); });
}

/// True if a "bbox" can be left, top, right, bottom. In COCO boxes, width and height are often
/// smaller than left and top.
bool is_left_top_right_bottom(const Json& box) {
  return are_four_numbers(box) && box[0].get<double>() < box[2].get<double>() &&
         box[1].get<double>() < box[3].get<double>();
}

/// Repairs records in two passes: prepare() and add_evidence() for each record, then finish(),
/// which knows the unit of the whole file.
class Repairer {
 public:
  Repairer(std::string from_dir, const std::string& to_dir, bool decode, Repairs& repairs)
      : from_dir_(std::move(from_dir)), path_from_(to_dir), decode_(decode), repairs_(repairs) {}

  /// @return false if the record or its image is not usable
  bool prepare(Json& record) {
    if (!record.is_object() || !record.contains("objects") || !record["objects"].is_array())
      return drop("left out: damaged records");
    if (!repair_image(record)) return drop("left out: records without a usable image");
    for (Json& object : record["objects"]) {
      if (!object.is_object()) continue;
      rename_desc(object);
      if (object.contains("bbox") && !is_left_top_right_bottom(object["bbox"]))
        boxes_have_other_sides_ = true;
    }
    return true;
  }

  /// Runs between the passes. Afterwards, "bbox" is "bbox_2d" in all records or in none.
  void add_evidence(Json& record) {
    if (!boxes_have_other_sides_) {
      for (Json& object : record["objects"]) rename_bbox(object);
    }
    evidence_.add(record);
  }

  /// @return false if the record has a "bbox" of unknown format, or normalized coordinates
  bool finish(Json& record) {
    for (const Json& object : record["objects"]) {
      if (object.is_object() && object.contains("bbox"))
        return drop(
            "left out: records with \"bbox\", because some in this file are not left, top, right, "
            "bottom (COCO boxes are x, y, width, height)");
    }
    const NumberFacts facts = find_number_facts(record);
    if (facts.are_small && evidence_.has_normalized())
      return drop("left out: records with normalized coordinates (0 to 1), which are not bins");
    if (evidence_.is_pixels() || facts.are_pixels()) {
      to_bins(record);
    } else {
      lower_thousands(record);
    }
    Json kept = Json::array();
    for (Json& object : record["objects"]) {
      if (repair_box(object)) kept.push_back(object);
    }
    record["objects"] = std::move(kept);
    return true;
  }

 private:
  bool drop(const char* what) {
    ++repairs_[what];
    return false;
  }

  bool repair_image(Json& record) {
    const auto images = record.find("images");
    if (images == record.end() || !images->is_array() || images->size() != 1 ||
        !(*images)[0].is_string())
      return false;
    const std::string path = join_path(from_dir_, (*images)[0].get<std::string>());
    try {
      const ImageSize size = read_image_size(path);
      smart_resize(size, {}, path);  // refuses extreme aspect ratios
      if (decode_) load_image(path);
      if (record.value("width", Json()) != size.width_px ||
          record.value("height", Json()) != size.height_px)
        ++repairs_["sizes corrected from the image file"];
      record["width"] = size.width_px;
      record["height"] = size.height_px;
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      return false;
    }
    record["images"] = {path_from_(path)};
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
    ++repairs_["records converted from pixels to bins"];
    for (const auto& [number, side] : collect_coordinates(record)) {
      *number = static_cast<int>(
          std::clamp(std::round(kNumBins * number->get<double>() / side), 0.0, kNumBins - 1.0));
    }
  }

  /// Programs that write 0 … 1000 use 1000 for the far edge, which is the last bin.
  void lower_thousands(Json& record) {
    for (const auto& [number, side] : collect_coordinates(record)) {
      if (number->get<double>() != kNumBins) continue;
      *number = kNumBins - 1;
      ++repairs_["coordinates changed from 1000 to 999"];
    }
  }

  /// Swaps corners into order. @return false for a box without area
  bool repair_box(Json& object) {
    const auto box = object.is_object() ? object.find("bbox_2d") : object.end();
    if (!object.is_object() || box == object.end() || !are_four_numbers(*box)) return true;
    Json& sides = *box;
    bool swapped = false;
    for (const size_t low : {size_t{0}, size_t{1}}) {
      const double first = sides[low].get<double>(), second = sides[low + 2].get<double>();
      if (first == second) return drop("left out: boxes without area");
      if (first < second) continue;
      std::swap(sides[low], sides[low + 2]);
      swapped = true;
    }
    if (swapped) ++repairs_["boxes with swapped corners, put in order"];
    return true;
  }

  std::string from_dir_;
  PathFrom path_from_;
  bool decode_;
  Repairs& repairs_;
  PixelEvidence evidence_;
  bool boxes_have_other_sides_ = false;
};

/// Reads the usable records and runs the first pass on them.
std::vector<Json> prepare_records(const std::string& path, Repairer& repairer, Repairs& repairs) {
  std::vector<Json> records;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      Json record = parse_json(line, path);
      if (repairer.prepare(record)) records.push_back(std::move(record));
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      ++repairs["left out: damaged records"];
    }
  }
  for (Json& record : records) repairer.add_evidence(record);
  return records;
}

/// Removes objects with the desc and bins of an earlier one, even if they are written differently.
/// @param sample  the parsed record
void drop_repeats(Json& record, const Sample& sample, Repairs& repairs) {
  Json kept = Json::array();
  std::set<std::pair<std::string, std::vector<int>>> seen;
  for (size_t i = 0; i < sample.objects.size(); ++i) {
    if (seen.emplace(sample.objects[i].desc, sample.objects[i].geometry.bins).second) {
      kept.push_back(record["objects"][i]);
    } else {
      ++repairs["left out: repeated objects"];
    }
  }
  record["objects"] = std::move(kept);
}

[[noreturn]] void refuse_empty_copy(const std::string& path, const Repairs& repairs) {
  std::vector<std::string> reasons;
  for (const auto& [what, count] : repairs) reasons.push_back(fmt::format("{} {}", count, what));
  throw UserError(
      ErrorKind::kData,
      {.error = "no record is left, so nothing was written",
       .where = path,
       .what = reasons.empty() ? "it has no records" : join(reasons, "; "),
       .fix =
           "fix the records by hand, or convert them with `rematch data from-…` (docs/data.md)"});
}

}  // namespace

Repairs write_repaired(const std::string& path, const std::string& out, bool decode,
                       const std::vector<std::string>& added_tokens, const InputFiles& others) {
  InputFiles inputs = others;
  inputs.add(path);
  inputs.refuse(out);
  const std::string parent = fs::path(path).parent_path().string();
  const fs::path target = fs::absolute(out).lexically_normal().parent_path();
  const ForbiddenTexts forbidden = forbidden_texts(added_tokens);
  Repairs repairs;
  Repairer repairer(parent.empty() ? "." : parent, target.string(), decode, repairs);
  std::string lines;
  for (Json& record : prepare_records(path, repairer, repairs)) {
    if (!repairer.finish(record)) continue;
    try {
      const Sample sample =
          read_record(python_json(record),
                      {.where = path, .directory = target.string(), .forbidden = &forbidden});
      drop_repeats(record, sample, repairs);
      for (const std::string& image : sample.image_paths) inputs.add(image);
      lines += python_json(record) + "\n";
    } catch (const UserError& error) {
      ++repairs["left out: records where " + error.problems().front().error];
    }
  }
  if (lines.empty()) refuse_empty_copy(path, repairs);
  make_directories(target.string());
  write_output(out, inputs, lines);
  return repairs;
}

}  // namespace rematch
