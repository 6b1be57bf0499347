#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/flow/sample.h"

namespace rematch {

/// One of the two files of a split.
struct SplitPart {
  std::string path;
  bool replaces_earlier = false;  ///< a file was there before
  int64_t num_records = 0, num_images = 0;
};

struct SplitFiles {
  SplitPart train, val;
  int64_t num_repeats = 0;  ///< records that share a picture with an earlier one
};

/// Options for splitting a JSONL.
struct SplitOptions {
  double val_share = 0.1;  ///< share of validation records, in (0, 1)
  uint64_t seed = 0;
  std::string out_dir;  ///< empty: next to the file
};

/// Selects the validation records. Records with a hash in common are in the same part. The choice
/// depends on the seed and the images, not on the order of the records.
/// @param image_hashes  image hashes of each record
/// @param where  the file, for the error
/// @return one flag per record; each part has at least one record
/// @throws UserError (data) if all records are connected by common images
std::vector<bool> choose_val(const std::vector<Strings>& image_hashes, const SplitOptions& options,
                             const std::string& where);

/// Writes NAME-train.jsonl and NAME-val.jsonl with the records of NAME.jsonl in their order.
/// Records whose images show the same picture (picture_texts) are in the same file.
/// @throws UserError (data) for records that training would refuse, missing images, or a file that
/// cannot be split; (configuration) for a share outside (0, 1), or if a part would replace the file
/// or one of its images; (environment) if a file cannot be read or written
SplitFiles write_split(const std::string& path, const SplitOptions& options);

}  // namespace rematch
