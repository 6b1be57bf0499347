#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/flow/bins.h"
#include "base/json.h"
#include "base/out_of_resources.h"
#include "base/output_file.h"
#include "base/path_from.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/added_texts.h"
#include "learn/data/record.h"
#include "model/vision/image.h"
#include "model/vision/smart_resize.h"
#include "tools/review/box_forms.h"
#include "tools/review/field_names.h"
#include "tools/review/pixel_evidence.h"
#include "tools/review/review.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kFewObjects = 30;  // too few to tell a unit
constexpr const char* kRepeated = "left out: repeated objects";

bool are_four_numbers(const Json& box) {
  return box.is_array() && box.size() == 4 &&
         std::all_of(box.begin(), box.end(), [](const Json& side) { return side.is_number(); });
}

/// Repairs records in two passes: prepare() and add_evidence() for each record, then finish(),
/// which knows the unit of the whole file.
class Repairer {
 public:
  Repairer(std::string from_dir, const std::string& to_dir, const RepairOptions& options,
           Repairs& repairs)
      : from_dir_(std::move(from_dir)), path_from_(to_dir), options_(options), repairs_(repairs) {}

  /// @return false if the record or its image is not usable
  bool prepare(Json& record) {
    if (!record.is_object() || !record.contains("objects") || !record["objects"].is_array())
      return drop("left out: damaged records");
    forms_.add(record);
    if (!repair_image(record)) return false;
    for (Json& object : record["objects"]) {
      if (!object.is_object()) continue;
      rename_object_fields(object, repairs_);
      convert_box(object);
    }
    num_objects_ += std::ssize(record["objects"]);
    evidence_.add(record);
    return true;
  }

  /// Runs between the passes.
  /// @throws UserError (configuration) if the options must decide
  void check_evidence(const std::string& path) const {
    if (forms_.is_suspicious() && !options_.boxes)
      throw UserError(
          ErrorKind::kConfig,
          {.error = "the boxes do not look like corners (x1, y1, x2, y2)",
           .where = path,
           .what = fmt::format("{} of {} have swapped corners: {}", forms_.num_swapped(),
                               counted(forms_.num_boxes(), "box", "boxes"), forms_.verdict()),
           .fix = "say what the numbers are: --boxes xywh, --boxes cxcywh, or --boxes "
                  "xyxy for corners, which are then put in order"});
    const bool is_open = evidence_.is_pixels() || evidence_.has_normalized();
    if (is_open && !options_.unit && num_objects_ < kFewObjects)
      throw UserError(
          ErrorKind::kConfig,
          {.error = "too few objects to tell the unit of the numbers",
           .where = path,
           .what = fmt::format("{}; they look {}", counted(num_objects_, "object"),
                               evidence_.has_normalized() ? "normalized (0 to 1)" : "like pixels"),
           .fix = "say the unit: --unit pixels, --unit normalized, or --unit bins"});
  }

  /// The unit that the numbers of the file speak for, where they cannot be bins as they are.
  std::optional<CoordinateUnit> likely_unit() const {
    if (evidence_.has_normalized()) return CoordinateUnit::kShares;
    if (evidence_.is_pixels()) return CoordinateUnit::kPixels;
    if (evidence_.has_fractional_bins()) return CoordinateUnit::kBins;
    return std::nullopt;
  }

  /// @return false for normalized coordinates of which the options say nothing
  bool finish(Json& record) {
    const NumberFacts facts = find_number_facts(record);
    const bool is_in_pixels = evidence_.is_pixels() || facts.are_pixels();
    if (options_.unit == CoordinateUnit::kShares) {
      to_bins(record, "records converted from normalized coordinates to bins", true);
    } else if (!options_.unit && facts.are_small && evidence_.has_normalized()) {
      return drop(
          "left out: records with normalized coordinates (0 to 1), which are not bins; --unit "
          "normalized converts them");
    } else if (options_.unit == CoordinateUnit::kPixels || (!options_.unit && is_in_pixels)) {
      to_bins(record, "records converted from pixels to bins", false);
    } else {
      if (options_.unit) round_bins(record);
      lower_thousands(record);
    }
    Json& objects = record["objects"];
    // Without the box the record would teach that its object is not there.
    return std::all_of(objects.begin(), objects.end(),
                       [this](Json& object) { return repair_box(object); }) ||
           drop("left out: records with a box without area");
  }

 private:
  bool drop(const char* what) {
    ++repairs_[what];
    return false;
  }

  bool repair_image(Json& record) {
    rename_image(record, repairs_);
    const auto images = record.find("images");
    if (images == record.end() || !images->is_array() || images->size() != 1 ||
        !(*images)[0].is_string())
      return drop("left out: records without a usable image");
    const std::string path = join_path(from_dir_, (*images)[0].get<std::string>());
    try {
      const ImageFacts facts = read_image_facts(path);
      const ImageSize& size = facts.size;
      smart_resize(size, {}, path);  // refuses extreme aspect ratios
      if (options_.decode) load_image(path);
      if (facts.swaps_sides() && size != facts.stored_size() &&
          record.value("width", Json()) == facts.stored_size().width_px &&
          record.value("height", Json()) == facts.stored_size().height_px)
        return drop("left out: records drawn on the unturned pixels of a photo that EXIF turns");
      if (record.value("width", Json()) != size.width_px ||
          record.value("height", Json()) != size.height_px)
        ++repairs_["sizes corrected from the image file"];
      record["width"] = size.width_px;
      record["height"] = size.height_px;
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      return drop("left out: records without a usable image");
    }
    record["images"] = {path_from_(path)};
    return true;
  }

  void convert_box(Json& object) {
    if (!options_.boxes || *options_.boxes == BoxForm::kCorners || !object.contains("bbox_2d") ||
        !are_four_numbers(object["bbox_2d"]))
      return;
    Json& box = object["bbox_2d"];
    const std::array<double, 4> numbers = {box[0].get<double>(), box[1].get<double>(),
                                           box[2].get<double>(), box[3].get<double>()};
    // Half of an odd width is not a bin: whole numbers stay whole.
    const bool are_whole = std::all_of(numbers.begin(), numbers.end(),
                                       [](double number) { return number == std::floor(number); });
    box = Json::array();
    for (const double side : to_corners(numbers, *options_.boxes))
      add_number(box, are_whole ? std::floor(side + 0.5) : side);
    ++repairs_[fmt::format("boxes converted from {} to corners", box_form_name(*options_.boxes))];
  }

  /// @param are_shares  0..1 of the sides, not pixels
  void to_bins(Json& record, const char* what, bool are_shares) {
    ++repairs_[what];
    for (const auto& [number, side] : collect_coordinates(record)) {
      *number = to_bin(number->get<double>(), are_shares ? 1.0 : side);
    }
  }

  /// Halves up, as a place becomes a bin.
  void round_bins(Json& record) {
    for (const auto& [number, side] : collect_coordinates(record)) {
      const double value = number->get<double>();
      if (value == std::floor(value)) continue;
      *number = static_cast<int64_t>(std::floor(value + 0.5));
      ++repairs_["fractions of bins rounded"];
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

  /// Swaps corners into order.
  /// @return false for a box without area
  bool repair_box(Json& object) {
    const auto box = object.is_object() ? object.find("bbox_2d") : object.end();
    if (!object.is_object() || box == object.end() || !are_four_numbers(*box)) return true;
    Json& sides = *box;
    bool swapped = false;
    for (const size_t low : {size_t{0}, size_t{1}}) {
      const double first = sides[low].get<double>(), second = sides[low + 2].get<double>();
      if (first == second) return false;
      if (first < second) continue;
      std::swap(sides[low], sides[low + 2]);
      swapped = true;
    }
    if (swapped) ++repairs_["boxes with swapped corners, put in order"];
    return true;
  }

  std::string from_dir_;
  PathFrom path_from_;
  const RepairOptions& options_;
  Repairs& repairs_;
  PixelEvidence evidence_;
  BoxFormCensus forms_;
  int64_t num_objects_ = 0;
};

/// Reads the usable records and runs the first pass on them.
/// @param num_lost  receives the others
std::vector<Json> prepare_records(const std::string& path, Repairer& repairer, Repairs& repairs,
                                  int64_t& num_lost) {
  std::vector<Json> records;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    ++num_lost;
    try {
      Json record = parse_json(line, path);
      if (!repairer.prepare(record)) continue;
      records.push_back(std::move(record));
      --num_lost;
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      ++repairs["left out: damaged records"];
    }
  }
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
      ++repairs[kRepeated];
    }
  }
  record["objects"] = std::move(kept);
}

std::string reasons_of(const Repairs& repairs) {
  std::vector<std::string> reasons;
  for (const auto& [what, count] : repairs) reasons.push_back(fmt::format("{} {}", count, what));
  return reasons.empty() ? "it has no records" : join(reasons, "; ");
}

/// @throws UserError (data) if no record is left
void refuse_empty_copy(const std::string& path, const RepairedRecords& repaired,
                       const RepairOptions& options) {
  if (repaired.num_records > 0) return;
  std::string fix = repaired.first_fix.empty() ? options.advice : repaired.first_fix;
  if (!options.unit && repaired.likely_unit)
    fix = fmt::format("say the unit: --unit {}", unit_name(*repaired.likely_unit));
  throw UserError(ErrorKind::kData,
                  {.error = "no record is left, so nothing was written",
                   .where = path,
                   .what = reasons_of(repaired.repairs),
                   .fix = fix.empty() ? "fix the records by hand, or convert them with `rematch "
                                        "data from-…` (docs/data.md)"
                                      : fix});
}

/// @throws UserError (data) if records or objects are lost
void refuse_losses(const std::string& path, const RepairedRecords& repaired) {
  Repairs lost;
  for (const auto& [what, count] : repaired.repairs) {
    if (what.starts_with("left out:") && what != kRepeated) lost[what] = count;
  }
  if (lost.empty()) return;
  throw UserError(ErrorKind::kData,
                  {.error = "something cannot be repaired, and --strict is set",
                   .where = path,
                   .what = reasons_of(lost),
                   .fix = "correct these records, or drop --strict; nothing has been written"});
}

}  // namespace

const char* unit_name(CoordinateUnit unit) {
  return unit == CoordinateUnit::kBins     ? "bins"
         : unit == CoordinateUnit::kPixels ? "pixels"
                                           : "normalized";
}

RepairedRecords repair_records(const std::string& path, const std::string& out,
                               const RepairOptions& options) {
  const std::string parent = fs::path(path).parent_path().string();
  const fs::path target = fs::absolute(out).lexically_normal().parent_path();
  const ForbiddenTexts forbidden = forbidden_texts(options.added_tokens);
  RepairedRecords repaired;
  Repairer repairer(parent.empty() ? "." : parent, target.string(), options, repaired.repairs);
  std::vector<Json> records = prepare_records(path, repairer, repaired.repairs, repaired.num_lost);
  repaired.likely_unit = repairer.likely_unit();
  repairer.check_evidence(path);
  for (Json& record : records) {
    ++repaired.num_lost;
    if (!repairer.finish(record)) continue;
    try {
      const Sample sample =
          read_record(python_json(record),
                      {.where = path, .directory = target.string(), .forbidden = &forbidden});
      drop_repeats(record, sample, repaired.repairs);
      repaired.images.insert(repaired.images.end(), sample.image_paths.begin(),
                             sample.image_paths.end());
      repaired.lines += json_line(record);
      ++repaired.num_records;
      --repaired.num_lost;
    } catch (const UserError& error) {
      const Problem& problem = error.problems().front();
      ++repaired.repairs["left out: records where " + problem.error];
      if (repaired.first_fix.empty()) repaired.first_fix = problem.fix;
    }
  }
  return repaired;
}

RepairedRecords write_repaired(const std::string& path, const std::string& out,
                               const RepairOptions& options) {
  InputFiles inputs = options.others;
  inputs.add(path);
  inputs.refuse(out);
  RepairedRecords repaired = repair_records(path, out, options);
  refuse_empty_copy(path, repaired, options);
  if (options.strict) refuse_losses(path, repaired);
  for (const std::string& image : repaired.images) inputs.add(image);
  make_directories(fs::absolute(out).lexically_normal().parent_path().string());
  write_output(out, inputs, repaired.lines);
  return repaired;
}

}  // namespace rematch
