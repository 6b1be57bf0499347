#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/output_file.h"
#include "learn/data/dataset.h"

namespace rematch {

/// The records of a JSONL with their lines, for commands that copy records to other files. Does not
/// open images.
class RecordFile {
 public:
  /// @throws UserError as Dataset::load
  explicit RecordFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<Sample>& samples() const { return samples_; }
  /// The line of a sample without byte order mark.
  std::string_view line(const Sample& sample) const;
  /// The record of a sample with image paths relative to the directory of another file.
  /// @param out  path of that file
  Json record_for(const Sample& sample, const std::string& out) const;
  /// The line of a sample for another file; unchanged if the image paths stay the same.
  std::string line_for(const Sample& sample, const std::string& out) const;
  /// The files that no output may replace: this file, its images and `others`.
  InputFiles inputs(InputFiles others = {}) const;

 private:
  std::string path_;
  Strings lines_;
  std::vector<Sample> samples_;
};

/// Adds the images of samples to the files that no output may replace.
void add_images(InputFiles& inputs, const std::vector<Sample>& samples);

/// The path of an image relative to the directory of a file.
/// @param image  path as in a Sample
std::string relative_image_name(const std::string& out, const std::string& image);

}  // namespace rematch
