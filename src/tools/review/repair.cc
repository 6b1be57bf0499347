#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/flow/bins.h"
#include "base/out_of_resources.h"
#include "base/output_file.h"
#include "base/path_from.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/added_texts.h"
#include "learn/data/record.h"
#include "model/vision/image.h"
#include "model/vision/smart_resize.h"
#include "tools/import/source_files.h"
#include "tools/import/write_steps.h"
#include "tools/review/plain_record.h"
#include "tools/review/review.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr double kBins = kNumBins;

/// Converts the numbers of records to shares of the sides: add() for each, decide() for all, then
/// convert() for each.
class Repairer {
 public:
  Repairer(const std::string& path, const RepairOptions& options, Changes& changes)
      : path_(path), options_(options), changes_(changes) {}

  /// Takes the size of the image file, and the numbers as evidence.
  void add(ForeignImage& image) {
    num_without_size_ += image.width_px == 0 || image.height_px == 0;
    if (image.defect && (image.defect->reason == reason::kImageSize ||
                         image.defect->reason == reason::kSizeUnreadable)) {
      image.defect.reset();
      ++changes_["sizes corrected from the image file"];
    }
    if (image.defect) return;
    try {
      smart_resize(image.size, {}, image.path);  // refuses extreme aspect ratios
      if (options_.decode) load_image(image.path);
    } catch (const OutOfResources&) {
      throw;
    } catch (const UserError&) {
      return image.leave_out(reason::kImageUnreadable, image.where);
    }
    evidence_.add(numbers_of(image), image.size.width_px, image.size.height_px);
  }

  /// Decides what the numbers of all records mean. @return their unit
  /// @throws UserError (configuration) if they do not prove it and no option says it
  CoordinateUnit decide() {
    if (const std::optional<FormDoubt> doubt =
            doubt_form(evidence_, options_.unit, BoxForm::kCorners)) {
      if (!doubt->is_sure)
        throw config_error({.error = "the boxes do not look like corners (x1, y1, x2, y2)",
                            .where = path_,
                            .what = doubt->why + ", which does not prove it",
                            .fix =
                                "write left, top, right and bottom; of x, y, width, height these "
                                "are x, y, x + width and y + height"});
      form_ = doubt->fitting.front();
    }
    return unit_ = options_.unit ? *options_.unit : find_unit();
  }

  void convert(ForeignImage& image) const {
    if (image.defect) return;
    if (is_in_other_unit(image))
      return image.leave_out(
          "a record with numbers in another unit than the others (normalized, 0 to 1, or not)",
          image.where);
    if (unit_ != CoordinateUnit::kBins)
      ++changes_[fmt::format("records converted from {} to bins", name_of(unit_))];
    for (ForeignObject& object : image.objects) {
      convert_box(object);
      for (auto [x, y] : {std::pair(&object.x0, &object.y0), {&object.x1, &object.y1}})
        convert_point(*x, *y, image);
      for (auto& [x, y] : object.ring) convert_point(x, y, image);
    }
  }

 private:
  CoordinateUnit find_unit() const {
    const std::optional<UnitDoubt> doubt = doubt_unit(evidence_, CoordinateUnit::kBins, form_);
    if (doubt && doubt->is_sure) return doubt->unit;
    const bool is_open = num_without_size_ > 0 && evidence_.num_objects > 0 &&
                         !evidence_.read_as(CoordinateUnit::kPixels, form_).some_leave;
    if (!doubt && !is_open) return CoordinateUnit::kBins;
    throw config_error(
        {.error = "the unit of the numbers cannot be told",
         .where = path_,
         .what = fmt::format("{}, which {}", counted(evidence_.num_objects, "object"),
                             doubt ? doubt->why
                                   : "lie inside their image as pixels and as bins (0 to 999), in "
                                     "records without width and height"),
         .fix = "say the unit: --unit pixels, --unit normalized, or --unit bins"});
  }

  bool is_in_other_unit(const ForeignImage& image) const {
    UnitEvidence numbers;
    numbers.add(numbers_of(image), kBins, kBins);
    if (numbers.num_images == 0) return false;
    return unit_ == CoordinateUnit::kShares ? numbers.num_small == 0
                                            : numbers.num_small > 0 && evidence_.num_shares > 0;
  }

  /// Writes a box as corners, in order.
  void convert_box(ForeignObject& object) const {
    if (!object.ring.empty()) return;
    std::array<double, 4> box = {object.x0, object.y0, object.x1, object.y1};
    if (form_ != BoxForm::kCorners) {
      // half of an odd width is not a bin: whole numbers stay whole
      const bool are_whole =
          std::ranges::all_of(box, [](double side) { return side == std::floor(side); });
      box = to_corners(box, form_);
      for (double& side : box) side = are_whole ? std::floor(side + 0.5) : side;
      ++changes_[fmt::format("boxes converted from {} to corners", form_words(form_))];
    }
    if (box[2] < box[0] || box[3] < box[1]) ++changes_["boxes with swapped corners, put in order"];
    std::tie(object.x0, object.x1) = std::minmax(box[0], box[2]);
    std::tie(object.y0, object.y1) = std::minmax(box[1], box[3]);
  }

  /// Numbers as shares of the sides; a bin is one of its lower edge.
  void convert_point(double& x, double& y, ForeignImage& image) const {
    const bool are_bins = unit_ == CoordinateUnit::kBins;
    for (double* number : {&x, &y}) {
      const bool is_fraction = *number != std::floor(*number);
      if (are_bins && (*number < 0 || *number > kBins || (is_fraction && !options_.unit)))
        return image.lose("an object with a number outside the bins 0 to 999", image.where);
      if (are_bins && *number == kBins) ++changes_["coordinates changed from 1000 to 999"];
      if (are_bins && is_fraction) ++changes_["fractions of bins rounded"];
    }
    const auto side = [&](int px) {
      return are_bins ? kBins : unit_ == CoordinateUnit::kShares ? 1.0 : px;
    };
    x = to_bin(x, side(image.size.width_px)) / kBins;
    y = to_bin(y, side(image.size.height_px)) / kBins;
  }

  const std::string& path_;
  const RepairOptions& options_;
  Changes& changes_;
  UnitEvidence evidence_;
  int64_t num_without_size_ = 0;
  BoxForm form_ = BoxForm::kCorners;
  CoordinateUnit unit_ = CoordinateUnit::kBins;
};

/// Joins records of one image and prompt whose objects differ, and removes objects that repeat.
std::vector<ForeignImage> join_records(std::vector<ForeignImage> images, Changes& changes) {
  std::map<std::pair<std::string, std::string>, std::vector<ForeignImage*>> of_image;
  for (ForeignImage& image : images) {
    if (!image.defect && image.lost.empty())
      of_image[{fs::path(image.path).lexically_normal().string(), image.prompt}].push_back(&image);
  }
  std::vector<const ForeignImage*> joined;
  for (const auto& [key, records] : of_image) {
    ForeignImage& first = *records.front();
    const auto has_same = [&objects = first.objects](const ForeignImage* other) {
      return std::is_permutation(objects.begin(), objects.end(), other->objects.begin(),
                                 other->objects.end());
    };
    if (std::ranges::all_of(records, has_same)) continue;
    for (auto other = records.begin() + 1; other != records.end(); ++other) {
      first.objects.insert(first.objects.end(), (*other)->objects.begin(), (*other)->objects.end());
      joined.push_back(*other);
      ++changes["records joined with an earlier one of their image"];
    }
  }
  std::vector<ForeignImage> kept;
  for (ForeignImage& image : images) {
    if (contains(joined, &image)) continue;
    std::vector<ForeignObject> objects;
    for (ForeignObject& object : image.objects) {
      object.desc = python_strip(object.desc);
      if (!contains(objects, object))
        objects.push_back(object);
      else
        ++changes["repeated objects removed"];
    }
    image.objects = std::move(objects);
    kept.push_back(std::move(image));
  }
  return kept;
}

/// @throws UserError (data) if no record is left
void refuse_empty_copy(const std::string& path, const RepairedRecords& repaired,
                       const RepairOptions& options) {
  if (repaired.num_records > 0) return;
  Strings reasons;
  for (const auto& [what, count] : repaired.losses)
    reasons.push_back(fmt::format("{} left out: {}", count, what));
  const std::string& fix = repaired.first_fix.empty() ? options.advice : repaired.first_fix;
  throw data_error({.error = "no record is left, so nothing was written",
                    .where = path,
                    .what = reasons.empty() ? "it has no records" : join(reasons, "; "),
                    .fix = fix.empty() ? "fix the records by hand, or convert them with `rematch "
                                         "data from-…` (docs/data.md)"
                                       : fix});
}

}  // namespace

RepairedRecords repair_records(const std::string& path, const std::string& out,
                               const RepairOptions& options) {
  const std::string target = fs::absolute(out).lexically_normal().parent_path().string();
  const ForbiddenTexts forbidden = forbidden_texts({});
  ForeignSet set;
  std::vector<ForeignImage>& images = set.splits[guess_split(path)];
  each_record([](const Json& record, const auto& path, const auto& where, auto&, auto& images) {
    images.push_back(read_plain_record(record, path, where));
  })(path, set, images);
  join_images(set);
  RepairedRecords repaired;
  Repairer repairer(path, options, repaired.changes);
  for (ForeignImage& image : images) repairer.add(image);
  repaired.unit = repairer.decide();
  for (ForeignImage& image : images) repairer.convert(image);
  const PathFrom path_from(target);
  const ImportOptions usual;
  RecordMaker maker(path_from, usual, set.ledger);
  WrittenSplit split;
  for (const ForeignImage& image : join_records(std::move(images), repaired.changes)) {
    const std::optional<std::string> line = maker.make(image, split);
    if (!line) continue;
    try {
      read_record(*line, {.where = path, .directory = target, .forbidden = &forbidden});
      repaired.lines += *line;
      repaired.images.push_back(image.path);
      ++repaired.num_records;
    } catch (const UserError& error) {
      const Problem& problem = error.problems().front();
      set.ledger.lose_record("a record where " + problem.error, image.where);
      if (repaired.first_fix.empty()) repaired.first_fix = problem.fix;
    }
  }
  repaired.num_lost = set.ledger.num_records_lost();
  for (const auto& [reason, loss] : set.ledger.records())
    repaired.losses[reason::text_of(reason)] += loss.count;
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
