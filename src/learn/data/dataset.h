#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/flow/sample.h"
#include "base/text.h"
#include "learn/data/mixture.h"

namespace rematch {

struct PatchOptions;

/// Options for reading a JSONL.
struct DatasetOptions {
  std::optional<int64_t> limit;  ///< reads only the first N records
  Strings forbidden_texts;       ///< added tokens, which no `desc` may contain
  /// if set, replaces the name of every object, which a record may then leave out
  std::optional<std::string> name_all;
  bool require_single_image = true;  ///< stage 2: `images` has exactly one path
  bool check_image_files = true;     ///< checks that the image files exist
};

/// Counts of images that need a warning.
struct ImageCounts {
  int64_t num_deep_grey = 0;  ///< 16-bit grey, which Pillow shows almost white (ImageFacts)
  int64_t num_turned = 0;     ///< stored turned (EXIF), turned as viewers show them
  /// of these: no record's size can show which pixels it was drawn on (ImageFacts::hides_turn)
  int64_t num_hidden_turns = 0;
};

/// The records of one JSONL file, or of several with weights (BEHAVIOUR 2, 21.1), immutable after
/// loading.
class Dataset {
 public:
  /// Reads and checks a JSONL and reports all problems together: 20 in full, the others by line and
  /// object. Cost: linear in the file; with check_image_files also one stat per image.
  /// @throws UserError (environment) if the file is unreadable; (data) with path:line, object and
  /// fix of each problem, or if there are no records
  static Dataset load(const std::string& jsonl_path, const DatasetOptions& options);

  /// Concatenates data sets. A single one of weight 1 is returned unchanged.
  /// @param weights  one per data set, > 0
  /// @throws UserError (data) if a weight is so low that it selects no record
  static Dataset mix(std::vector<Dataset> files, const std::vector<double>& weights);

  /// Samples in file order. sample_id is the 0-based line number, so blank lines leave gaps; the
  /// ids of the next file continue after those of the previous one.
  const std::vector<Sample>& samples() const { return samples_; }
  int64_t size() const { return samples_.size(); }
  const std::string& path() const { return path_; }
  /// The files and their weights.
  const std::vector<MixturePart>& parts() const { return parts_; }
  /// Records per epoch: size() unless files have weights.
  int64_t epoch_size() const { return mixture_size(parts_); }

  /// Hash of the file's bytes as 16 hex digits (XXH3), which lets a resumed run detect changed
  /// data; for several files it covers their weights and order too.
  const std::string& content_hash() const { return content_hash_; }

  /// Warnings about legal but probably unintended content: shapes without area, coordinates that
  /// look like pixels.
  const Strings& warnings() const { return warnings_; }

  /// Sets `classes` and `image_names` of every sample: the names of all objects, and those of the
  /// same images (FileSet: also of copies), in lower case.
  /// @param label_of  label of a name; an image that shows one of a label's names has all of them
  void offer_classes(
      const std::function<std::string(const std::string&)>& label_of = normalize_label);

  /// Returns a copy without some samples.
  /// @param sample_indices  into samples(), ascending
  Dataset copy_without(const std::vector<int64_t>& sample_indices) const;

  /// Reads the header of every image and checks that its size equals the record's and is legal for
  /// processed_size().
  /// @throws UserError (data) with record, file and sizes of the first problems of each kind and
  /// the number of all
  ImageCounts validate_images(const PatchOptions& options) const;

  /// Decodes some images, evenly spread over the records: a truncated file has a good header.
  /// @param most  ≥ 1
  /// @return the number of decoded images
  /// @throws UserError (data) as validate_images
  int64_t decode_images(int64_t most) const;

 private:
  std::string path_;
  std::string content_hash_;
  std::vector<Sample> samples_;
  std::vector<MixturePart> parts_;
  Strings warnings_;
};

/// Warnings for the terminal about images of a data set.
/// @param path  of its JSONL
Strings image_warnings(const ImageCounts& counts, const std::string& path);

/// The images of a sample for a prompt; the grids come from the record's size, no file is opened.
/// @throws UserError (data) as processed_size()
std::vector<ImageRef> image_refs(const Sample& sample, const PatchOptions& options);

}  // namespace rematch
