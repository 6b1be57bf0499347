#pragma once
#include "tools/import/source_files.h"

// The parts of a YOLO data set: its images and classes, and its label files.
namespace rematch {

/// The images of a data set by split.
struct YoloLayout {
  std::string source;  ///< YAML or directory
  SplitFiles images = {};
  bool is_yaml = false;    ///< it names the splits
  bool has_lists = false;  ///< of images, which may leave out some
};

/// Reads a YAML, the only YAML of a directory, or a directory of images. Adds the files that it
/// reads to the set's sources, and sets the names of its classes.
/// @throws UserError (data)
YoloLayout read_yolo_layout(const std::string& yaml_or_directory, ForeignSet& set);

/// Reads label files.
class YoloLabels {
 public:
  /// Reads the objects of a file in normalized coordinates into an image. Each line that is not
  /// blank is an object; one that cannot be read is lost.
  /// @throws UserError (data) for UTF-16; (environment)
  void read(const std::filesystem::path& path, ForeignImage& image, ForeignSet& set);

  /// @throws UserError (data) for lines that evidently are keypoints, which look like outlines
  void check() const;

 private:
  int64_t num_long_ = 0;       ///< lines of more than a box
  int64_t num_keypoints_ = 0;  ///< of these: a box and points, not an outline
  std::string first_keypoints_;
};

/// True for a line with the numbers of an object.
bool is_yolo_label(const std::string& line);

/// Refuses a data set.
/// @param fix  empty: as refuse_source()
/// @throws UserError (data)
[[noreturn]] void refuse_yolo(const std::string& where, const std::string& what,
                              const std::string& fix = "");

/// Refuses lines with keypoints.
[[noreturn]] void refuse_keypoints(const std::string& where, const std::string& what);

}  // namespace rematch
