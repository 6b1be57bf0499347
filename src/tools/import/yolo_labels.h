#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>

#include "tools/import/class_names.h"
#include "tools/import/foreign.h"

namespace rematch {

/// Reads the label files of a YOLO data set.
class YoloLabels {
 public:
  YoloLabels(NamesById names, const ImportOptions& options, Ledger& ledger)
      : names_(std::move(names)), options_(options), ledger_(ledger) {}

  /// Reads the objects of a file in normalized coordinates into an image. Each line that is not
  /// blank is an object; one that cannot be read is lost.
  /// @throws UserError (data) for UTF-16; (environment)
  void read(const std::filesystem::path& path, ForeignImage& image);

  /// @throws UserError (data) for lines that evidently are keypoints, which look like outlines
  void check() const;

 private:
  void read_line(const std::string& line, const std::string& place, ForeignImage& image);

  NamesById names_;
  const ImportOptions& options_;
  Ledger& ledger_;
  int64_t num_long_ = 0;       ///< lines of more than a box
  int64_t num_keypoints_ = 0;  ///< of these: a box and points, not an outline
  std::string first_keypoints_;
};

/// Advice on lines with keypoints.
inline constexpr const char* kBoxesOnly =
    "keep the first five numbers of each line (cut -d' ' -f1-5 FILE > NEW), and leave out "
    "\"kpt_shape\"";

/// True for a line with the numbers of an object.
bool is_yolo_label(const std::string& line);

}  // namespace rematch
