#include "tools/records/record_file.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/path_from.h"
#include "base/text.h"
#include "learn/data/records_path.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// The directory of a file, with links resolved. The file need not exist.
fs::path canonical_directory(const std::string& path) {
  return fs::weakly_canonical(fs::absolute(path).parent_path());
}

Strings read_lines(const std::string& path) {
  require_records_file(path);
  return split(read_file(path), '\n');
}

}  // namespace

RecordFile::RecordFile(const std::string& path)
    : path_(path),
      lines_(read_lines(path)),
      samples_(Dataset::load(path, {.require_single_image = false, .check_image_files = false})
                   .samples()) {}

std::string_view RecordFile::line(const Sample& sample) const {
  std::string_view line = lines_[sample.sample_id];
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (line.starts_with(kByteOrderMark)) line.remove_prefix(kByteOrderMark.size());
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

Json RecordFile::record_for(const Sample& sample, const std::string& out) const {
  Json record = parse_json(line(sample), sample.where);
  Json images = Json::array();
  for (const std::string& image : sample.image_paths)
    images.push_back(relative_image_name(out, image));
  record["images"] = std::move(images);
  return record;
}

std::string RecordFile::line_for(const Sample& sample, const std::string& out) const {
  if (canonical_directory(out) == canonical_directory(path_)) return std::string(line(sample));
  return python_json(record_for(sample, out));
}

InputFiles RecordFile::inputs(InputFiles others) const {
  InputFiles inputs = std::move(others);
  inputs.add(path_);
  add_images(inputs, samples_);
  return inputs;
}

void add_images(InputFiles& inputs, const std::vector<Sample>& samples) {
  for (const Sample& sample : samples) {
    for (const std::string& image : sample.image_paths) inputs.add(image);
  }
}

std::string relative_image_name(const std::string& out, const std::string& image) {
  return PathFrom(parent_of(out))(image);
}

}  // namespace rematch
