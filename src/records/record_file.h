#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/output_file.h"
#include "data/dataset.h"

namespace rematch {

/// The records of a JSONL with their lines, for commands that write some of them again. Images are
/// not looked at.
class RecordFile {
 public:
  /// @throws UserError as Dataset::load
  explicit RecordFile(const std::string& path);

  const std::string& path() const { return path_; }
  const std::vector<Sample>& samples() const { return samples_; }
  /// The line of a sample, without a byte order mark.
  std::string_view line(const Sample& sample) const;
  /// The record of a sample with its images named relative to the directory of another file.
  /// @param out  path of the file that will hold it
  Json record_for(const Sample& sample, const std::string& out) const;
  /// The line to write into another file: as it is where the images keep their names.
  std::string line_for(const Sample& sample, const std::string& out) const;
  /// The file, its images and `others`: what a command that writes records may not replace.
  InputFiles inputs(InputFiles others = {}) const;

 private:
  std::string path_;
  std::vector<std::string> lines_;
  std::vector<Sample> samples_;
};

/// The name of an image in a file, relative to that file's directory. @param image  path as a
/// Sample has it
std::string image_name_in(const std::string& out, const std::string& image);

}  // namespace rematch
