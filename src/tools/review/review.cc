#include "tools/review/review.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/added_texts.h"
#include "learn/data/file_set.h"
#include "learn/data/foreign_file.h"
#include "learn/data/image_path.h"
#include "learn/data/record.h"
#include "learn/estep/match/repeats.h"
#include "model/vision/image.h"
#include "tools/import/source_files.h"
#include "tools/review/outside.h"
#include "tools/review/plain_record.h"

namespace rematch {
namespace {

constexpr double kTinyPx = 2;
constexpr size_t kMostPath = 200;          // columns
constexpr int64_t kMostAspectRatio = 200;  // as in smart_resize
constexpr double kNearlySame = 0.8;        // maskIoU
constexpr int kMaskSide = 256;             // default of maskiou_resolution

/// The place of a problem inside its record; "" for the record itself.
std::string place_in_record(const std::string& where, const RecordContext& context) {
  const std::string rest =
      where.starts_with(context.where) ? where.substr(context.where.size()) : "";
  if (rest.starts_with(", ")) return rest.substr(2) + ": ";
  return rest.starts_with(":") ? "column " + rest.substr(1) + ": " : "";
}

/// Collects statistics and findings over the records of a file.
class Reviewer {
 public:
  Reviewer(const std::string& path, bool decode) : path_(path), decode_(decode), outside_(path) {}

  void add(const std::string& line, const RecordContext& context, int64_t number) {
    ++review_.num_records;
    add_numbers(line, context);
    Sample sample;
    try {
      sample = read_record(line, context);
    } catch (const UserError& error) {
      ++review_.num_refused;
      if (review_.first_fix.empty())
        review_.first_fix =
            fmt::format("line {}: {}", number, with_file(error.problems().front().fix, path_));
      for (const Problem& problem : error.problems()) {
        note(FindingKind::kRefused, number,
             fmt::format("{}{} ({})", place_in_record(problem.where, context), problem.error,
                         problem.what));
      }
      return;
    }
    add_images(sample, number);
    add_objects(sample, number);
    samples_.push_back(std::move(sample));
  }

  Review finish() {
    review_.width_px = spread_of([](const Sample& sample) { return sample.width_px; });
    review_.height_px = spread_of([](const Sample& sample) { return sample.height_px; });
    review_.objects_per_image =
        spread_of([](const Sample& sample) { return std::ssize(sample.objects); });
    review_.form_doubt = doubt_form(evidence_, std::nullopt, BoxForm::kCorners);
    const bool is_form_sure = review_.form_doubt && review_.form_doubt->is_sure;
    review_.unit_doubt =
        doubt_unit(evidence_, CoordinateUnit::kBins,
                   is_form_sure ? review_.form_doubt->fitting.front() : BoxForm::kCorners);
    review_.split_images = find_split_images(samples_);
    return std::move(review_);
  }

 private:
  template <typename Value>
  Spread spread_of(const Value& value) const {
    if (samples_.empty()) return {};
    std::vector<int64_t> values;
    for (const Sample& sample : samples_) values.push_back(value(sample));
    std::ranges::sort(values);
    return {.least = values.front(), .median = values[values.size() / 2], .most = values.back()};
  }

  /// The numbers of a record, also of one that cannot be used.
  void add_numbers(const std::string& line, const RecordContext& context) {
    try {
      const ForeignImage image = read_plain_record(parse_record(line), path_, context.where);
      if (image.width_px > 0 && image.height_px > 0)
        evidence_.add(numbers_of(image), image.width_px, image.height_px);
    } catch (const LeftOut&) {
      return;  // read_record() reports it
    }
  }

  /// Notes an unreadable image, with the fix for the first one of its kind.
  void note_unreadable(const std::string& path, const Problem& problem, int64_t number) {
    if (review_.first_fix.empty())
      review_.first_fix = fmt::format("line {}: {}", number, problem.fix);
    const std::string fix = advised_.insert(problem.fix).second ? "; " + problem.fix : "";
    note(FindingKind::kUnreadableImage, number,
         fmt::format("{}: {}{}", shown_start(path, kMostPath), problem.error, fix));
  }

  void note(FindingKind kind, int64_t line, std::string what) {
    review_.findings[static_cast<size_t>(kind)].push_back({line, std::move(what)});
  }

  void add_images(const Sample& sample, int64_t number) {
    const auto [least, most] = std::minmax(sample.width_px, sample.height_px);
    if (most > kMostAspectRatio * static_cast<int64_t>(least)) {
      note(FindingKind::kRefused, number,
           fmt::format(
               "the aspect ratio of an image is too large: {} x {}, one side is more than {} "
               "times the other",
               sample.width_px, sample.height_px, kMostAspectRatio));
    }
    for (const std::string& path : sample.image_paths) {
      review_.num_outside += outside_.is_outside(path);
      if (seen_.contains(path))
        note(FindingKind::kRepeatedImage, number,
             paths_.contains(path) ? path : path + " (another name for the same content)");
      seen_.insert(path);
      paths_.insert(path);
      if (const std::optional<Problem> problem = find_path_problem(path)) {
        note_unreadable(path, *problem, number);
        continue;
      }
      try {
        const ImageFacts facts = read_image_facts(path);
        const ImageSize &size = facts.size,
                        record{.width_px = sample.width_px, .height_px = sample.height_px};
        if (facts.is_deep_grey) note(FindingKind::kDeepGrey, number, path);
        review_.num_turned += facts.is_turned();
        review_.num_hidden_turns += facts.hides_turn();
        if (decode_) load_image(path);
        if (facts.is_unturned(record)) {
          note(FindingKind::kUnturned, number,
               fmt::format("{}: viewers show it as {} x {}, the record says {} x {}", path,
                           size.width_px, size.height_px, sample.width_px, sample.height_px));
        } else if (size != record) {
          note(FindingKind::kWrongSize, number,
               fmt::format("{} is {} x {}, the record says {} x {}", path, size.width_px,
                           size.height_px, sample.width_px, sample.height_px));
        }
      } catch (const OutOfResources&) {
        throw;
      } catch (const UserError& error) {
        note_unreadable(path, error.problems().front(), number);
      }
    }
  }

  void add_objects(const Sample& sample, int64_t number) {
    review_.num_objects += std::ssize(sample.objects);
    review_.num_empty_scenes += sample.objects.empty();
    std::set<std::pair<std::string, std::vector<int>>> seen;
    const std::vector<int> repeated = repeated_objects(sample.objects, kNearlySame, kMaskSide);
    for (size_t i = 0; i < sample.objects.size(); ++i) {
      const auto& [desc, geometry] = sample.objects[i];
      ++review_.classes[desc];
      const std::string name = fmt::format("objects[{}] \"{}\" [{}]", i, shown_label(desc),
                                           fmt::join(geometry.bins, ", "));
      if (!seen.emplace(desc, geometry.bins).second) {
        note(FindingKind::kRepeatedObject, number, name);
      } else if (std::ranges::binary_search(repeated, static_cast<int>(i))) {
        note(FindingKind::kNearRepeat, number, name);
      }
      add_shape(sample, geometry, number, name);
    }
  }

  void add_shape(const Sample& sample, const Geometry& geometry, int64_t number,
                 const std::string& name) {
    const bool is_box = geometry.kind == GeometryKind::kBbox2d;
    ++(is_box ? review_.num_boxes : review_.num_polygons);
    const std::vector<int>& bins = geometry.bins;
    if (is_box && (bins[2] < bins[0] || bins[3] < bins[1]))
      return note(FindingKind::kInverted, number, name);
    if (has_no_area(geometry)) return note(FindingKind::kNoArea, number, name);
    if (!is_box) return;
    const double width = (bins[2] - bins[0]) * sample.width_px / static_cast<double>(kNumBins);
    const double height = (bins[3] - bins[1]) * sample.height_px / static_cast<double>(kNumBins);
    if (width < kTinyPx || height < kTinyPx)
      note(FindingKind::kTiny, number, fmt::format("{}, {:.1f} x {:.1f} px", name, width, height));
  }

  std::string path_;
  bool decode_;
  Review review_;
  FileSet seen_;                           // images, by content
  std::set<std::string> paths_, advised_;  // images by name; errors whose fix has been shown
  UnitEvidence evidence_;
  std::vector<Sample> samples_;
  OutsideImages outside_;
};

}  // namespace

const char* finding_name(FindingKind kind) {
  constexpr const char* kUnturned =
      "records drawn on the unturned pixels of a photo that EXIF turns (remove its tag: exiftool "
      "-Orientation= -n FILE)";
  constexpr const char* kNames[] = {
      "errors for which training refuses a record",
      "images that cannot be read",
      "sizes that differ from the image file",
      kUnturned,
      "boxes with swapped corners",
      "objects without area",
      "objects that occur twice in a record",
      "objects that nearly occur twice in a record (same desc, maskIoU of 0.8 or more)",
      "images that occur in an earlier record, under this or another name",
      "boxes narrower than two pixels",
      "16-bit grey images, whose levels above 255 become white"};
  static_assert(std::size(kNames) == kNumFindingKinds);
  return kNames[static_cast<size_t>(kind)];
}

Review review_jsonl(const std::string& path, bool decode) {
  const std::string bytes = read_file(path), directory = parent_of(path);
  const ForbiddenTexts forbidden = forbidden_texts({});
  Reviewer reviewer(path, decode);
  int64_t number = 0;
  for (const std::string& line : split(bytes, '\n')) {
    throw_if_interrupted();
    ++number;
    if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
    reviewer.add(line,
                 {.where = fmt::format("{}:{}", path, number),
                  .directory = directory,
                  .allow_inverted = true,
                  .forbidden = &forbidden},
                 number);
  }
  Review review = reviewer.finish();
  // an array with a record on its last line has one that can be read
  if (review.num_refused == review.num_records || bytes.starts_with('['))
    refuse_foreign_file(path, bytes);
  return review;
}

}  // namespace rematch
