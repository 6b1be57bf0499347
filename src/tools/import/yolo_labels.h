#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

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

  /// @throws UserError (data) for lines that evidently are keypoints, angles or pixels, or have
  /// their confidence first, and if no class has a name
  void check(const std::string& where) const;

 private:
  void read_line(const std::string& line, const std::string& place, ForeignImage& image);
  /// Removes confidence and track.
  /// @return the reason why the rest is neither a box nor an outline, or ""
  std::string cut_extras(std::vector<double>& values, const std::string& place);

  NamesById names_;
  const ImportOptions& options_;
  Ledger& ledger_;
  /// Lines, and the first of a kind.
  struct Lines {
    int64_t count = 0;
    std::string first = {};
    void add(const std::string& line) {
      if (count++ == 0) first = line;
    }
  };
  Lines all_, pixels_, five_, angles_;  ///< angles: fifth numbers, not confidences
  Lines second_, last_;                 ///< where the confidence must be: the rest leaves the image
  Lines long_, keypoints_;              ///< more than a box; a box and points, not an outline
  std::map<std::string, int64_t> unnamed_;  ///< lines of each class id without a name
};

/// Advice on lines with keypoints.
inline constexpr const char* kBoxesOnly =
    "keep the first five numbers of each line (cut -d' ' -f1-5 FILE > NEW), and leave out "
    "\"kpt_shape\"";

/// True if the first line of a text file is one of labels.
bool is_yolo_label_file(const std::filesystem::path& path);

}  // namespace rematch
