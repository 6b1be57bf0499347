#pragma once
#include "base/path_from.h"
#include "learn/data/record.h"
#include "tools/import/foreign.h"

// The steps of write_records(), in their order.
namespace rematch {

/// Finds the file and the size of each image, and compares them with what its annotation says. Each
/// image without a usable file, or whose file is in doubt, gets its defect.
void join_images(ForeignSet& set);

/// Gives each image a prompt that lists class names: those of its objects, and some that it does
/// not show, in the order of the set's classes. An image without objects lists as many as an image
/// has on average; one of which no absent class is known is left out. The choice depends on the
/// name of the image alone. A class that may be there (ForeignImage::doubtful, objects that cannot
/// be read) is never listed as an absent one.
void add_class_prompts(ForeignSet& set);

/// Refuses the images of a split whose numbers are evidently in another unit than the one they are
/// read in: normalized in place of pixels, corners in place of x, y, width and height, or beyond
/// the unit of answers.
/// @throws UserError (data) with the numbers and the option that says the unit
void check_units(const ForeignSet& set, const ForeignImages& images, const std::string& jsonl);

/// The scale of the coordinates of an image.
NumberScale coordinate_scale(const ForeignImage& image, const ImportOptions& options);

/// Makes the JSON lines of the records of a set.
class RecordMaker {
 public:
  RecordMaker(const PathFrom& path_from, const ImportOptions& options, Ledger& ledger);

  /// The line of an image; nullopt for a record that is left out, which the ledger then counts.
  std::optional<std::string> make(ForeignImage image, WrittenSplit& split);

 private:
  const PathFrom& path_from_;
  const ImportOptions& options_;
  Ledger& ledger_;
  ForbiddenTexts forbidden_;
};

}  // namespace rematch
