#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// Counts of write_boxes.
struct BoxesWritten {
  int64_t num_records = 0, num_polygons = 0;
  int64_t num_flat = 0;  ///< polygons whose box has no area
};

/// Writes a copy of a JSONL with every `poly` replaced by its bounding box.
/// @throws UserError (data) for records that training would refuse; (configuration) if `out` is the
/// file or one of its images; (environment) if a file cannot be read or written
BoxesWritten write_boxes(const std::string& path, const std::string& out);

}  // namespace rematch
