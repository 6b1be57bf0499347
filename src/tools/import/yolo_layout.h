#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/import/class_names.h"
#include "tools/import/foreign.h"

namespace rematch {

/// The images of a YOLO data set by split, and the names of its classes.
struct YoloLayout {
  std::string source;  ///< YAML or directory
  NamesById names;
  std::map<std::string, std::vector<std::filesystem::path>> images = {};
  bool is_yaml = false;    ///< it names the splits
  bool has_lists = false;  ///< of images, which may leave out some
};

/// Reads a YAML, the only YAML of a directory, or a directory of images. Adds the files that it
/// reads to the set's sources.
/// @throws UserError (data); YAML::Exception for values of another type
YoloLayout read_yolo_layout(const std::string& yaml_or_directory, const ImportOptions& options,
                            ForeignSet& set);

}  // namespace rematch
