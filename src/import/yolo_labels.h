#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "import/foreign.h"

namespace rematch {

/// Content of the lines of a YOLO data set's label files.
struct YoloLabels {
  std::map<int, std::string> names;  ///< of the classes
  bool polygons = false;             ///< outlines are kept
  /// numbers of the key points after each box (kpt_shape); 0 = the set has none
  size_t num_key_point_values = 0;
};

/// @throws UserError (data)
[[noreturn]] void refuse_yolo(const std::string& where, const std::string& what,
                              const std::string& fix);

/// The objects of a label file, in shares of the image's sides. A line that is not blank is an
/// object or an error. @throws UserError (data) naming the line
std::vector<ForeignObject> read_yolo_labels(const std::filesystem::path& path,
                                            const YoloLabels& labels, ForeignSet& set);

}  // namespace rematch
