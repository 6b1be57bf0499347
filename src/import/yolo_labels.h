#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "import/foreign.h"

namespace rematch {

/// Settings of a YOLO data set that decide how to read its label files.
struct YoloLabels {
  std::map<int, std::string> names;  ///< class names by id
  bool polygons = false;             ///< keeps outlines
  size_t num_keypoint_values = 0;    ///< keypoint numbers after each box (kpt_shape); 0 = none
};

/// Throws the UserError (data) of an unreadable YOLO data set.
[[noreturn]] void refuse_yolo(const std::string& where, const std::string& what,
                              const std::string& fix);

/// Reads the objects of a label file in normalized coordinates. Each line that is not blank is an
/// object. @throws UserError (data) with the line
std::vector<ForeignObject> read_yolo_labels(const std::filesystem::path& path,
                                            const YoloLabels& labels, ForeignSet& set);

}  // namespace rematch
