#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/mixture.h"
#include "flow/sample.h"

namespace rematch {

struct PatchOptions;

/// Options for reading a JSONL.
struct DatasetOptions {
  std::optional<int64_t> limit;  ///< only the first N records; later lines are not read
  /// contents of the tokenizer's added tokens, which no `desc` may contain
  std::vector<std::string> forbidden_texts;
  bool require_single_image = true;  ///< stage 2: `images` holds exactly one path
  /// check that the image files exist, before a model is loaded
  bool check_image_files = true;
};

/// The records of one JSONL file, or of several with weights (BEHAVIOUR 2, 21.1), immutable after
/// loading.
class Dataset {
 public:
  /// Reads and checks a JSONL. All problems are reported together: 20 in full, the others by line
  /// and object.
  /// @throws UserError (environment) when the file is unreadable; (data) naming path:line, object
  /// and fix, also when there are no records. Cost: linear in the file, and one stat per image with
  /// check_image_files.
  static Dataset load(const std::string& jsonl_path, const DatasetOptions& options);

  /// Joins data sets in the order given. One of weight 1 stays as it is.
  /// @param weights  one for each, > 0
  /// @throws UserError (data) when a weight takes none of a file's records
  static Dataset mixed(std::vector<Dataset> files, const std::vector<double>& weights);

  /// In file order; sample_id is the 0-based line number, so ids have gaps where lines are blank.
  /// The ids of a further file continue those of the file before it.
  const std::vector<Sample>& samples() const { return samples_; }
  int64_t size() const { return static_cast<int64_t>(samples_.size()); }
  const std::string& path() const { return path_; }
  /// The files and their weights.
  const std::vector<MixturePart>& parts() const { return parts_; }
  /// Records that an epoch takes: size() unless files have weights.
  int64_t epoch_size() const { return mixture_size(parts_); }

  /// Hash of the file's bytes as 16 hex digits (XXH3), to detect on resume that the data has
  /// changed; of several files also of their weights and order.
  const std::string& content_hash() const { return content_hash_; }

  /// Warnings about legal but probably unintended content, shown once: boxes without area,
  /// coordinates that look like pixels.
  const std::vector<std::string>& warnings() const { return warnings_; }

  /// The same without some samples. @param sample_indices  into samples(), ascending
  Dataset without(const std::vector<int64_t>& sample_indices) const;

  /// Reads the header of every image: its size must equal the record's and be one that
  /// processed_size() takes.
  /// @return how many are 16-bit grey, of which Pillow shows little but white (ImageFacts)
  /// @throws UserError (data) with 20 problems in full, each naming record, file and sizes, and the
  /// lines of the others
  int64_t validate_images(const PatchOptions& options) const;

 private:
  std::string path_;
  std::string content_hash_;
  std::vector<Sample> samples_;
  std::vector<MixturePart> parts_;
  std::vector<std::string> warnings_;
};

/// The images of a sample as prompts carry them; their grids come from the record's size, without
/// opening a file.
/// @throws UserError (data) as processed_size()
std::vector<ImageRef> image_refs(const Sample& sample, const PatchOptions& options);

}  // namespace rematch
