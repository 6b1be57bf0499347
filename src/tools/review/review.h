#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/output_file.h"
#include "learn/data/doubts.h"
#include "learn/data/units.h"

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
  /// Doubts about the numbers of all records, also of those that cannot be read.
  std::optional<FormDoubt> form_doubt;
  std::optional<UnitDoubt> unit_doubt;
  SplitImages split_images;
  int64_t num_outside = 0;       ///< images that OutsideImages finds
  int64_t num_turned = 0;        ///< photos stored turned (EXIF)
  int64_t num_hidden_turns = 0;  ///< of these: ImageFacts::hides_turn()

  const std::vector<Finding>& of(FindingKind kind) const {
    return findings[static_cast<size_t>(kind)];
  }
};

/// Reviews every record, including bad ones.
/// @param decode  decodes every image (slow) instead of reading only its header
/// @throws UserError (environment) if the JSONL cannot be read; (data) if it has another format
Review review_jsonl(const std::string& path, bool decode);

/// Options of write_repaired().
struct RepairOptions {
  bool decode = false;                                ///< as in review_jsonl
  std::optional<CoordinateUnit> unit = std::nullopt;  ///< unset: by the evidence in the numbers
  InputFiles others{};                                ///< files that `out` must not replace
  std::string advice = {};                            ///< what to do if no record is left
};

/// Changed or left out parts: description and count.
using Changes = std::map<std::string, int64_t>;

/// The repaired records of a file, and what was changed.
struct RepairedRecords {
  std::string lines;
  int64_t num_records = 0, num_lost = 0;
  Changes changes, losses;     ///< of records or objects; losses: records left out
  Strings images;              ///< that the records name
  CoordinateUnit unit{};       ///< that the numbers were read in
  std::string first_fix = {};  ///< of the first record that stays unusable; empty: none
};

/// Repairs records: imports them (read_plain_record), converts boxes and numbers to corners in
/// bins, joins records of one image, and takes sizes from the image files; leaves out records with
/// a box without area and those that are still unusable.
/// @param out  the file that the image paths are relative to
/// @throws UserError (configuration) if the numbers do not prove what they mean; (environment)
RepairedRecords repair_records(const std::string& path, const std::string& out,
                               const RepairOptions& options);

/// Writes the repaired copy.
/// @throws UserError as repair_records; (data) if no record is left; (configuration) if `out` is
/// the file itself, one of its images or one of `others`, before anything is written
RepairedRecords write_repaired(const std::string& path, const std::string& out,
                               const RepairOptions& options);

}  // namespace rematch
