#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <span>

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
#include "learn/data/image_path.h"
#include "learn/data/record.h"
#include "model/vision/image.h"
#include "model/vision/smart_resize.h"
#include "tools/review/review.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

bool are_four_numbers(const Json& box) {
  return box.is_array() && box.size() == 4 &&
         std::all_of(box.begin(), box.end(), [](const Json& side) { return side.is_number(); });
}

Json* find_box(Json& object) {
  const auto box = object.is_object() ? object.find("bbox_2d") : object.end();
  return object.is_object() && box != object.end() && are_four_numbers(*box) ? &*box : nullptr;
}

/// Repairs the records of a file: prepare() for each, decide() for all, then finish() for each.
/// Both return the reason to leave out the record, or nullptr.
class Repairer {
 public:
  Repairer(std::string from_dir, const std::string& to_dir, const RepairOptions& options,
           Changes& changes)
      : from_dir_(std::move(from_dir)), path_from_(to_dir), options_(options), changes_(changes) {}

  const char* prepare(Json& record) {
    if (!record.is_object() || !record.contains("objects") || !record["objects"].is_array())
      return "damaged records";
    tidy_fields(record, changes_);
    const bool had_size = record.contains("width") && record.contains("height");
    if (const char* loss = repair_image(record)) return loss;
    num_without_size_ += !had_size;
    evidence_.add(find_numbers(record), record["width"].get<double>(),
                  record["height"].get<double>());
    return nullptr;
  }

  /// Decides what the numbers of all records mean.
  /// @throws UserError (configuration) if they do not prove it and no option says it
  void decide(const std::string& path) {
    if (const std::optional<FormDoubt> doubt =
            doubt_form(evidence_, options_.unit, BoxForm::kCorners)) {
      if (!doubt->is_sure)
        throw UserError(ErrorKind::kConfig,
                        {.error = "the boxes do not look like corners (x1, y1, x2, y2)",
                         .where = path,
                         .what = doubt->why + ", which does not prove it",
                         .fix = "write left, top, right and bottom; of x, y, width, height these "
                                "are x, y, x + width and y + height"});
      form_ = doubt->fitting.front();
    }
    unit_ = options_.unit ? *options_.unit : find_unit(path);
  }

  const char* finish(Json& record) {
    if (is_of_other_unit(record))
      return "records with numbers in another unit than the others (normalized, 0 to 1, or not)";
    for (Json& object : record["objects"]) convert_box(object);
    if (unit_ != CoordinateUnit::kBins)
      ++changes_[fmt::format("records converted from {} to bins", unit_name(unit_))];
    convert_numbers(record);
    Json& objects = record["objects"];
    // Without the box the record would teach that its object is not there.
    return std::all_of(objects.begin(), objects.end(),
                       [this](Json& object) { return repair_box(object); })
               ? nullptr
               : "records with a box without area";
  }

 private:
  const char* repair_image(Json& record) {
    const auto images = record.find("images");
    if (images == record.end() || !images->is_array() || images->size() != 1 ||
        !(*images)[0].is_string())
      return "records without a usable image";
    const std::string written = join_path(from_dir_, (*images)[0].get<std::string>()),
                      path = existing_form(written);
    if (path != written) ++changes_["names of images in the Unicode form of their files"];
    try {
      const ImageFacts facts = read_image_facts(path);
      const ImageSize& size = facts.size;
      smart_resize(size, {}, path);  // refuses extreme aspect ratios
      if (options_.decode) load_image(path);
      const auto says = [&](const ImageSize& each) {
        return record.value("width", Json()) == each.width_px &&
               record.value("height", Json()) == each.height_px;
      };
      if (size != facts.stored_size() && says(facts.stored_size()))
        return "records drawn on the unturned pixels of a photo that EXIF turns";
      if (!says(size)) ++changes_["sizes corrected from the image file"];
      record["width"] = size.width_px;
      record["height"] = size.height_px;
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      return "records without a usable image";
    }
    record["images"] = {path_from_(path)};
    return nullptr;
  }

  CoordinateUnit find_unit(const std::string& path) const {
    const std::optional<UnitDoubt> doubt = doubt_unit(evidence_, CoordinateUnit::kBins, form_);
    if (doubt && doubt->is_sure) return doubt->unit;
    const bool is_open = num_without_size_ > 0 && evidence_.num_objects > 0 &&
                         !evidence_.read_as(CoordinateUnit::kPixels, form_).some_leave;
    if (!doubt && !is_open) return CoordinateUnit::kBins;
    throw UserError(
        ErrorKind::kConfig,
        {.error = "the unit of the numbers cannot be told",
         .where = path,
         .what = fmt::format("{}, which {}", counted(evidence_.num_objects, "object"),
                             doubt ? doubt->why
                                   : "lie inside their image as pixels and as bins (0 to 999), in "
                                     "records without width and height"),
         .fix = "say the unit: --unit pixels, --unit normalized, or --unit bins"});
  }

  bool is_of_other_unit(Json& record) const {
    UnitEvidence numbers;
    numbers.add(find_numbers(record), kNumBins, kNumBins);
    if (numbers.num_images == 0) return false;
    return unit_ == CoordinateUnit::kShares ? numbers.num_small == 0
                                            : numbers.num_small > 0 && evidence_.num_shares > 0;
  }

  void convert_box(Json& object) {
    Json* box = find_box(object);
    if (form_ == BoxForm::kCorners || box == nullptr) return;
    std::array<double, 4> numbers{};
    for (size_t i = 0; i < 4; ++i) numbers[i] = (*box)[i].get<double>();
    // Half of an odd width is not a bin: whole numbers stay whole.
    const bool are_whole = std::all_of(numbers.begin(), numbers.end(),
                                       [](double number) { return number == std::floor(number); });
    *box = Json::array();
    for (const double side : to_corners(numbers, form_))
      box->push_back(plain_number(are_whole ? std::floor(side + 0.5) : side));
    ++changes_[fmt::format("boxes converted from {} to corners", form_words(form_))];
  }

  void convert_numbers(Json& record) {
    const double sides[] = {record["width"].get<double>(), record["height"].get<double>()};
    for (const std::vector<Json*>& geometry : find_coordinates(record)) {
      for (size_t i = 0; i < geometry.size(); ++i) {
        Json& number = *geometry[i];
        if (!number.is_number()) continue;
        const double value = number.get<double>();
        if (unit_ != CoordinateUnit::kBins) {
          number = to_bin(value, unit_ == CoordinateUnit::kShares ? 1.0 : sides[i % 2]);
        } else if (value == kNumBins) {
          // programs that write 0 … 1000 use 1000 for the far edge, which is the last bin
          number = kNumBins - 1;
          ++changes_["coordinates changed from 1000 to 999"];
        } else if (options_.unit && value != std::floor(value)) {
          number = std::min(kNumBins - 1, static_cast<int>(std::floor(value + 0.5)));
          ++changes_["fractions of bins rounded"];
        }
      }
    }
  }

  /// Swaps corners into order.
  /// @return false for a box without area
  bool repair_box(Json& object) {
    Json* box = find_box(object);
    if (box == nullptr) return true;
    bool swapped = false;
    for (const size_t low : {size_t{0}, size_t{1}}) {
      const double first = (*box)[low].get<double>(), second = (*box)[low + 2].get<double>();
      if (first == second) return false;
      if (first < second) continue;
      std::swap((*box)[low], (*box)[low + 2]);
      swapped = true;
    }
    if (swapped) ++changes_["boxes with swapped corners, put in order"];
    return true;
  }

  std::string from_dir_;
  PathFrom path_from_;
  const RepairOptions& options_;
  Changes& changes_;
  UnitEvidence evidence_;
  int64_t num_without_size_ = 0;
  BoxForm form_ = BoxForm::kCorners;
  CoordinateUnit unit_ = CoordinateUnit::kBins;
};

/// Reads the usable records and prepares them.
std::vector<Json> prepare_records(const std::string& path, Repairer& repairer,
                                  RepairedRecords& repaired) {
  std::vector<Json> records;
  for (const std::string& line : split(read_file(path), '\n')) {
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    const char* loss = "damaged records";
    try {
      Json record = parse_json(line, path);
      loss = repairer.prepare(record);
      if (loss == nullptr) records.push_back(std::move(record));
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      loss = "damaged records";
    }
    if (loss != nullptr) repaired.lose(loss);
  }
  return records;
}

/// Records in bins, with those of one image and prompt joined.
class JoinedRecords {
 public:
  JoinedRecords(const RecordContext& context, RepairedRecords& repaired)
      : context_(context), repaired_(repaired) {}

  /// @throws UserError (data) if training would refuse the record
  void add(Json record) {
    Sample sample = read_record(python_json(record), context_);
    of_image_[{sample.image_paths.front(), sample.prompt}].push_back(kept_.size());
    kept_.emplace_back(std::move(record), std::move(sample));
  }

  void write() {
    for (const auto& [image, indices] : of_image_) join(indices);
    for (auto& [json, sample] : kept_) {
      if (json.is_null()) continue;
      drop_repeats(json, sample);
      repaired_.images.push_back(sample.image_paths.front());
      repaired_.lines += json_line(json);
      ++repaired_.num_records;
    }
  }

 private:
  /// Joins the records of an image with the first unless all have the same objects.
  void join(const std::vector<size_t>& indices) {
    auto& [json, sample] = kept_[indices.front()];
    if (std::all_of(indices.begin(), indices.end(), [&, &first = sample](size_t i) {
          return are_same_objects(first.objects, kept_[i].second.objects);
        }))
      return;
    for (const size_t i : std::span(indices).subspan(1)) {
      auto& [other_json, other] = kept_[i];
      json["objects"].insert(json["objects"].end(), other_json["objects"].begin(),
                             other_json["objects"].end());
      sample.objects.insert(sample.objects.end(), other.objects.begin(), other.objects.end());
      other_json = nullptr;
      ++repaired_.changes["records joined with an earlier one of their image"];
    }
  }

  /// Removes objects with the desc and bins of an earlier one, even if they are written
  /// differently.
  void drop_repeats(Json& record, const Sample& sample) {
    Json kept = Json::array();
    std::set<std::pair<std::string, std::vector<int>>> seen;
    for (size_t i = 0; i < sample.objects.size(); ++i) {
      if (seen.emplace(sample.objects[i].desc, sample.objects[i].geometry.bins).second) {
        kept.push_back(record["objects"][i]);
      } else {
        ++repaired_.changes["repeated objects removed"];
      }
    }
    record["objects"] = std::move(kept);
  }

  const RecordContext& context_;
  RepairedRecords& repaired_;
  std::vector<std::pair<Json, Sample>> kept_;
  std::map<std::pair<std::string, std::string>, std::vector<size_t>> of_image_;  // and prompt
};

/// @throws UserError (data) if no record is left
void refuse_empty_copy(const std::string& path, const RepairedRecords& repaired,
                       const RepairOptions& options) {
  if (repaired.num_records > 0) return;
  std::vector<std::string> reasons;
  for (const auto& [what, count] : repaired.losses)
    reasons.push_back(fmt::format("{} left out: {}", count, what));
  const std::string& fix = repaired.first_fix.empty() ? options.advice : repaired.first_fix;
  throw UserError(ErrorKind::kData,
                  {.error = "no record is left, so nothing was written",
                   .where = path,
                   .what = reasons.empty() ? "it has no records" : join(reasons, "; "),
                   .fix = fix.empty() ? "fix the records by hand, or convert them with `rematch "
                                        "data from-…` (docs/data.md)"
                                      : fix});
}

}  // namespace

void RepairedRecords::lose(const std::string& reason) {
  ++losses[reason];
  ++num_lost;
}

RepairedRecords repair_records(const std::string& path, const std::string& out,
                               const RepairOptions& options) {
  const std::string parent = fs::path(path).parent_path().string();
  const fs::path target = fs::absolute(out).lexically_normal().parent_path();
  const ForbiddenTexts forbidden = forbidden_texts({});
  const RecordContext context{.where = path, .directory = target.string(), .forbidden = &forbidden};
  RepairedRecords repaired;
  Repairer repairer(parent.empty() ? "." : parent, target.string(), options, repaired.changes);
  std::vector<Json> records = prepare_records(path, repairer, repaired);
  repairer.decide(path);
  JoinedRecords joined(context, repaired);
  for (Json& record : records) {
    try {
      const char* loss = repairer.finish(record);
      loss == nullptr ? joined.add(std::move(record)) : repaired.lose(loss);
    } catch (const UserError& error) {
      const Problem& problem = error.problems().front();
      repaired.lose("records where " + problem.error);
      if (repaired.first_fix.empty()) repaired.first_fix = problem.fix;
    }
  }
  joined.write();
  return repaired;
}

RepairedRecords write_repaired(const std::string& path, const std::string& out,
                               const RepairOptions& options) {
  InputFiles inputs = options.others;
  inputs.add(path);
  inputs.refuse(out);
  RepairedRecords repaired = repair_records(path, out, options);
  refuse_empty_copy(path, repaired, options);
  for (const std::string& image : repaired.images) inputs.add(image);
  make_directories(fs::absolute(out).lexically_normal().parent_path().string());
  write_output(out, inputs, repaired.lines);
  return repaired;
}

}  // namespace rematch
