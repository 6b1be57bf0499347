#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/import/foreign.h"

namespace rematch {

/// Lines that may hold a box and keypoints where the set names no kpt_shape.
struct KeypointEvidence {
  int64_t num_lines = 0;     ///< lines of two points or more after a box, or of points with flags
  int64_t num_in_box = 0;    ///< of these: read as a box and points, all points are in the box
  int64_t num_not_ring = 0;  ///< of these: width and height are no corner of an outline
  size_t num_values = 0;     ///< of the first line
  bool has_flags = false;    ///< points have a third number, 0, 1 or 2
  bool is_uniform = true;    ///< all lines have that many
  std::string first;         ///< "FILE:7: 0 0.5 …"

  void add(const std::vector<double>& values, const std::string& line);
  /// True if the lines are boxes with keypoints: outlines differ in length.
  bool is_proof() const;
  /// "[3, 2]"
  std::string shape() const;
};

/// Counts over the label files of a set, to recognise labels in another form.
struct YoloEvidence {
  int64_t num_lines = 0, num_pixels = 0;
  std::string first_pixels;  ///< "FILE:7: 0 120 60 50 50"
  KeypointEvidence keypoints;
  int64_t num_five = 0;                    ///< lines of a class and five numbers
  int64_t num_angles = 0;                  ///< of these: the fifth cannot be a confidence
  std::string first_angle;                 ///< as first_pixels
  std::map<std::string, int64_t> unnamed;  ///< lines of each class id without a name
};

/// Reads the label files of a YOLO data set.
class YoloLabels {
 public:
  /// @param names  of the classes, by id
  /// @param num_keypoint_values  numbers after each box (kpt_shape); 0 = none
  YoloLabels(std::map<std::string, std::string> names, size_t num_keypoint_values,
             const ImportOptions& options, Ledger& ledger)
      : names_(std::move(names)),
        num_keypoint_values_(num_keypoint_values),
        options_(options),
        ledger_(ledger) {}

  /// Reads the objects of a file in normalized coordinates into an image. Each line that is not
  /// blank is an object; one that cannot be read is lost.
  /// @throws UserError (data) for UTF-16; (environment)
  void read(const std::filesystem::path& path, ForeignImage& image);

  bool have_names() const { return !names_.empty(); }
  const YoloEvidence& evidence() const { return evidence_; }

 private:
  void read_line(const std::string& line, const std::filesystem::path& folder,
                 const std::string& place, ForeignImage& image);
  void note_form(const std::vector<double>& values, const std::string& line);
  bool cut_extras(std::vector<double>& values, const std::filesystem::path& folder);
  ForeignObject make(const std::vector<double>& values);
  bool has_outlines(const std::filesystem::path& folder);

  std::map<std::string, std::string> names_;
  size_t num_keypoint_values_;
  const ImportOptions& options_;
  Ledger& ledger_;
  YoloEvidence evidence_;
  std::map<std::filesystem::path, bool> has_outlines_;  // by folder
};

/// True if the first line of a text file is one of labels.
bool is_yolo_label_file(const std::filesystem::path& path);

}  // namespace rematch
