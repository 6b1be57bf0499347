#pragma once
#include <cstdint>
#include <string>

namespace rematch {

/// Numbers of what write_boxes wrote.
struct BoxesWritten {
  int64_t num_records = 0, num_polygons = 0;
  int64_t num_flat = 0;  ///< polygons with a box without area
};

/// Writes a copy of a JSONL in which every `poly` is its bounding box; all else stays.
/// @throws UserError (data) for records that training would refuse; (configuration) when `out` is
/// the file or an image of it; (environment) when a file cannot be read or written
BoxesWritten write_boxes(const std::string& path, const std::string& out);

}  // namespace rematch
