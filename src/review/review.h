#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/output_file.h"

namespace rematch {

/// Kinds of findings, from what training refuses to what is only unusual.
enum class FindingKind {
  kRefused,          ///< training stops at it; a record may have several
  kUnreadableImage,  ///< its file is missing, damaged or of a kind that must be converted
  kWrongSize,        ///< the record's sides are not the file's
  kInverted,         ///< a box with swapped corners
  kNoArea,           ///< a box or outline without area
  kRepeatedObject,   ///< same desc and place twice in a record
  kNearRepeat,       ///< same desc as an earlier object of the record, and maskIoU ≥ 0.8 with it
  kRepeatedImage,    ///< an image that an earlier record has
  kTiny,             ///< a box narrower than two pixels
  kDeepGrey,         ///< an image of 16-bit grey, most of which becomes white
  kNumKinds
};
constexpr size_t kNumFindingKinds = static_cast<size_t>(FindingKind::kNumKinds);

/// A kind in words, e.g. "boxes with swapped corners".
const char* finding_name(FindingKind kind);

/// A finding and its line.
struct Finding {
  int64_t line = 0;  ///< 1-based
  std::string what;
};

/// Smallest, middle and largest of some numbers.
struct Spread {
  int64_t least = 0, median = 0, most = 0;
};

/// Content of a JSONL and its oddities.
struct Review {
  int64_t num_records = 0, num_objects = 0, num_boxes = 0, num_polygons = 0, num_empty_scenes = 0;
  int64_t num_refused = 0;                 ///< records that cannot be read
  std::map<std::string, int64_t> classes;  ///< objects by desc
  Spread width_px, height_px, objects_per_image;
  std::array<std::vector<Finding>, kNumFindingKinds> findings;
  /// as BoxCensus says: no coordinate exceeds its image's side, in many scenes
  bool looks_like_pixels = false;
  int64_t num_outside = 0;  ///< images outside the JSONL's directory (OutsideImages)

  /// Classes that differ only in case, width or spaces, each group by frequency.
  std::vector<std::vector<std::string>> similar_classes() const;

  const std::vector<Finding>& of(FindingKind kind) const {
    return findings[static_cast<size_t>(kind)];
  }
};

/// Reads every record, the bad ones too. @param decode  decodes every image (slow), not only its
/// header
/// @param added_tokens  of a model, in addition to those of every supported tokenizer: no `desc`
/// may contain their texts
/// @throws UserError (environment) when the JSONL cannot be read; (data) when it is another
/// program's format
Review review_jsonl(const std::string& path, bool decode,
                    const std::vector<std::string>& added_tokens = {});

/// The changes of write_repaired(): a sentence and its count.
using Repairs = std::map<std::string, int64_t>;

/// Writes a repaired copy: misnamed fields renamed, pixels turned into bins, corners put in order,
/// sizes taken from the files; objects without area, repeated objects, and records that still
/// cannot be used are left out. Paths of images are relative to the new file. Numbers are pixels
/// when that is sure: some are no bins (fractions, above 1000) and none lies outside its image, or
/// the whole file's look like it (BoxCensus). A coordinate of 1000 in bins becomes 999.
/// @param added_tokens  as review_jsonl. @throws UserError (data) when no record is left;
/// (configuration) when `out` is the file itself or one of `others`;
///         both before anything is written; (environment) when `out` cannot be written
Repairs write_repaired(const std::string& path, const std::string& out,
                       const std::vector<std::string>& added_tokens = {},
                       const InputFiles& others = {});

}  // namespace rematch
