#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/flow/box_form.h"
#include "base/output_file.h"
#include "tools/review/box_forms.h"

namespace rematch {

/// Kinds of findings, from errors to unusual values.
enum class FindingKind {
  kRefused,          ///< training refuses the record; it may have several
  kUnreadableImage,  ///< the file is missing, damaged or of a kind that must be converted
  kWrongSize,        ///< the record's width or height differs from the file's
  kUnturned,         ///< a record drawn on the stored pixels of a photo that EXIF turns
  kInverted,         ///< a box with swapped corners
  kNoArea,           ///< a box or outline without area
  kRepeatedObject,   ///< same desc and bins as an earlier object of the record
  kNearRepeat,       ///< same desc as an earlier object of the record, and maskIoU ≥ 0.8 with it
  kRepeatedImage,    ///< an image of an earlier record, under this or another name
  kTiny,             ///< a box narrower than two pixels
  kDeepGrey,         ///< a 16-bit grey image, which becomes mostly white
  kNumKinds
};
constexpr size_t kNumFindingKinds = static_cast<size_t>(FindingKind::kNumKinds);

/// The name of a kind for users, e.g. "boxes with swapped corners".
const char* finding_name(FindingKind kind);

/// A finding with its line.
struct Finding {
  int64_t line = 0;  ///< 1-based
  std::string what;
};

/// Minimum, median and maximum of numbers.
struct Spread {
  int64_t least = 0, median = 0, most = 0;
};

/// Statistics of a JSONL and all findings.
struct Review {
  int64_t num_records = 0, num_objects = 0, num_boxes = 0, num_polygons = 0, num_empty_scenes = 0;
  int64_t num_refused = 0;  ///< records that cannot be read
  std::string first_fix;    ///< advice for the first of them or of the unreadable images, with its
                            ///< line
  std::map<std::string, int64_t> classes;  ///< objects by desc
  Spread width_px, height_px, objects_per_image;
  std::array<std::vector<Finding>, kNumFindingKinds> findings;
  bool looks_like_pixels = false;  ///< BoxCensus::looks_like_pixels()
  BoxFormCensus box_forms;         ///< of all records, also of those that cannot be read
  int64_t num_outside = 0;         ///< images that OutsideImages finds
  int64_t num_turned = 0;          ///< photos stored turned (EXIF)
  int64_t num_hidden_turns = 0;    ///< of these: ImageFacts::hides_turn()

  /// Groups of classes that differ only in case, width or spaces, most frequent spelling first.
  std::vector<std::vector<std::string>> similar_classes() const;

  const std::vector<Finding>& of(FindingKind kind) const {
    return findings[static_cast<size_t>(kind)];
  }
};

/// Reviews every record, including bad ones.
/// @param decode  decodes every image (slow) instead of reading only its header
/// @param added_tokens  of a model: more texts that no `desc` may contain
/// @throws UserError (environment) if the JSONL cannot be read; (data) if it has the format of
/// another program
Review review_jsonl(const std::string& path, bool decode,
                    const std::vector<std::string>& added_tokens = {});

/// The changes made by write_repaired(): description and count.
using Repairs = std::map<std::string, int64_t>;

/// Unit of the numbers of a file.
enum class CoordinateUnit { kBins, kPixels, kShares };
/// The value of --unit: "bins", "pixels" or "normalized".
const char* unit_name(CoordinateUnit unit);

/// Options of write_repaired().
struct RepairOptions {
  bool decode = false;                                ///< as in review_jsonl
  std::vector<std::string> added_tokens = {};         ///< as in review_jsonl
  std::optional<BoxForm> boxes = std::nullopt;        ///< unset: corners
  std::optional<CoordinateUnit> unit = std::nullopt;  ///< unset: by the evidence in the numbers
  InputFiles others{};                                ///< files that `out` must not replace
  bool strict = false;                                ///< losing a record or object is an error
  std::string advice = {};                            ///< what to do if no record is left
};

/// The repaired records of a file, and what was changed.
struct RepairedRecords {
  std::string lines;
  int64_t num_records = 0, num_lost = 0;
  Repairs repairs;
  std::vector<std::string> images;                           ///< that the records name
  std::optional<CoordinateUnit> likely_unit = std::nullopt;  ///< of numbers that are no bins
  std::string first_fix = {};  ///< of the first record that stays unusable; empty: none
};

/// Repairs records: renames misnamed fields, unquotes numbers, converts boxes and pixels, puts
/// corners in order and takes sizes from the image files; leaves out records with a box without area, repeated
/// objects and records that are still unusable. Numbers count as pixels if some cannot be bins
/// (fractions, above 1000) and all are inside their images, or if BoxCensus suspects pixels. A bin
/// of 1000 becomes 999; fractions of bins are rounded where `unit` says that they are bins.
/// @param out  the file that the image paths are relative to
/// @throws UserError (configuration) if more than one box in twenty has swapped corners and `boxes`
/// is not set, or if fewer than 30 objects would decide the unit; (environment)
RepairedRecords repair_records(const std::string& path, const std::string& out,
                               const RepairOptions& options);

/// Writes the repaired copy.
/// @throws UserError as repair_records; (data) if no record is left, or with `strict` if something
/// is lost; (configuration) if `out` is
/// the file itself, one of its images or one of `others`, before anything is written
RepairedRecords write_repaired(const std::string& path, const std::string& out,
                               const RepairOptions& options);

}  // namespace rematch
