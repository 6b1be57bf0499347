#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// One of the two files of a split.
struct SplitPart {
  std::string path;
  int64_t num_records = 0, num_images = 0;
};

struct SplitFiles {
  SplitPart train, val;
};

/// Options for dividing a JSONL.
struct SplitOptions {
  double val_share = 0.1;  ///< of the records, within (0, 1)
  uint64_t seed = 0;
  std::string out_dir;  ///< empty: next to the file
};

/// Marks the records of the validation part. Records that share an image, by content, are on the
/// same side. The choice depends on the seed and the images, not on the order of the records.
/// @param image_hashes  of each record
/// @return one flag a record; at least one record is on each side
/// @throws UserError (data) when all records share images. @param where  the file, for the error
std::vector<bool> choose_val(const std::vector<std::vector<std::string>>& image_hashes,
                             const SplitOptions& options, const std::string& where);

/// Writes NAME-train.jsonl and NAME-val.jsonl with the records of NAME.jsonl in their order.
/// @throws UserError (data) for records that training would refuse, missing images, or a file that
/// cannot be divided; (configuration) for a share outside (0, 1), or when a part would replace the
/// file or an image of it; (environment) when a file cannot be read or written
SplitFiles write_split(const std::string& path, const SplitOptions& options);

}  // namespace rematch
