#include "learn/data/dataset.h"

#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/class_list.h"
#include "learn/data/doubts.h"
#include "learn/data/file_set.h"
#include "learn/data/foreign_file.h"
#include "learn/data/image_path.h"
#include "learn/data/problem_list.h"
#include "learn/data/record.h"
#include "model/vision/image.h"
#include "model/vision/patches.h"

namespace rematch {
namespace {

constexpr int64_t kEarly = 20;  // bad lines after which other formats are refused

// True if Python's str.strip leaves nothing. Bytes that are not UTF-8 are not blank, so that the
// reader reports them.
bool is_blank(std::string_view line) {
  if (!line.empty() && line.front() == '{') return false;  // nearly every line
  return is_valid_utf8(line) && python_strip(line).empty();
}

void check_image_files(const Sample& sample) {
  for (const std::string& path : sample.image_paths) {
    std::optional<Problem> problem = find_path_problem(path);
    if (!problem) continue;
    problem->where = sample.where;
    throw UserError(ErrorKind::kData, *std::move(problem));
  }
}

/// Runs a check of a sample's images and collects its problems.
template <typename Check>
void collect(const Sample& sample, ProblemList& problems, const Check& check) {
  try {
    check();
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    problems.add(with_record(error, sample.where));
  }
}

ProblemList problems_of(const std::string& path) {
  return {path, fmt::format("`rematch data check {} --all` lists them, and says what repairs the "
                            "file",
                            shell_word(path))};
}

void check_image_sizes(const Sample& sample, const PatchOptions& options, ImageCounts& counts) {
  const ImageSize record{.width_px = sample.width_px, .height_px = sample.height_px};
  for (const std::string& path : sample.image_paths) {
    const ImageFacts facts = read_image_facts(path);
    const ImageSize& size = facts.size;
    counts.num_deep_grey += facts.is_deep_grey;
    counts.num_turned += facts.is_turned();
    counts.num_hidden_turns += facts.hides_turn();
    if (facts.is_unturned(record)) {
      throw data_error(
          {.error = "a record was drawn on the unturned pixels of a photo",
           .where = sample.where,
           .what = fmt::format("{0} is stored as {1} x {2} px and turned by its EXIF orientation "
                               "{3}: viewers and training show {4} x {5}, the record says {1} x "
                               "{2}",
                               path, sample.width_px, sample.height_px, facts.orientation,
                               size.width_px, size.height_px),
           .fix = "remove the tag, and every program shows the pixels of the record: exiftool "
                  "-Orientation= -n FILE; or draw the record again on the turned photo"});
    }
    if (size != record) {
      throw data_error(
          {.error = "the size of an image differs from its record",
           .where = sample.where,
           .what = fmt::format("{} is {} x {} px (width x height), the record says {} x {}", path,
                               size.width_px, size.height_px, sample.width_px, sample.height_px),
           .fix = "correct the record's \"width\" and \"height\", or replace the file"});
    }
    processed_size(size, options, fmt::format("{} ({})", path, sample.where));
  }
}

}  // namespace

Dataset Dataset::load(const std::string& jsonl_path, const DatasetOptions& options) {
  const MappedFile file(jsonl_path);
  const std::string_view bytes = file.bytes();
  Dataset dataset;
  dataset.path_ = jsonl_path;
  dataset.content_hash_ = content_hash_of(bytes);

  const std::string parent = parent_of(jsonl_path);
  const ForbiddenTexts forbidden(options.forbidden_texts);
  ProblemList problems = problems_of(jsonl_path);
  int64_t line_idx = 0, num_records = 0;
  for (size_t begin = 0; begin < bytes.size(); ++line_idx) {
    throw_if_interrupted();
    if (options.limit && num_records >= *options.limit) break;
    const size_t end = std::min(bytes.find('\n', begin), bytes.size());
    const std::string_view line = bytes.substr(begin, end - begin);
    begin = end + 1;
    if (is_blank(line)) continue;
    ++num_records;
    const std::string where = fmt::format("{}:{}", jsonl_path, line_idx + 1);
    try {
      Sample sample = read_record(line, {.where = where,
                                         .directory = parent,
                                         .require_single_image = options.require_single_image,
                                         .forbidden = &forbidden,
                                         .name_all = options.name_all});
      sample.sample_id = line_idx;
      if (options.check_image_files) check_image_files(sample);
      dataset.samples_.push_back(std::move(sample));
    } catch (const UserError& error) {
      problems.add(error);
      // Refuses other formats early, not after millions of lines of a COCO file.
      if (dataset.samples_.empty() && problems.num_records() == kEarly)
        refuse_foreign_file(jsonl_path, bytes);
    }
  }
  if (dataset.samples_.empty()) refuse_foreign_file(jsonl_path, bytes);
  problems.throw_if_any();
  if (dataset.samples_.empty()) {
    throw data_error({.error = "the dataset has no records",
                      .where = jsonl_path,
                      .what = options.limit ? fmt::format("sample limit {}", *options.limit)
                                            : fmt::format("{} lines", line_idx),
                      .fix = "use a JSONL with at least one record"});
  }
  dataset.warnings_ = content_warnings(jsonl_path, dataset.samples_);
  dataset.parts_ = {{.path = jsonl_path, .end = dataset.size()}};
  return dataset;
}

Dataset Dataset::mix(std::vector<Dataset> files, const std::vector<double>& weights) {
  REMATCH_CHECK(!files.empty() && files.size() == weights.size(), "a weight for each file");
  if (files.size() == 1 && weights.front() == 1) return std::move(files.front());
  Dataset result;
  std::string identity;
  int64_t first_id = 0;
  for (size_t i = 0; i < files.size(); ++i) {
    Dataset& file = files[i];
    const int64_t begin = result.size();
    int64_t next_id = first_id;
    for (Sample& sample : file.samples_) {
      sample.sample_id += first_id;
      next_id = sample.sample_id + 1;
      result.samples_.push_back(std::move(sample));
    }
    first_id = next_id;
    result.parts_.push_back(
        {.path = file.path_, .begin = begin, .end = result.size(), .weight = weights[i]});
    if (result.parts_.back().num_drawn() == 0) {
      throw data_error({.error = "the weight of a file is too low to select a record",
                        .where = fmt::format("custom.train_jsonl: {}", file.path_),
                        .what = fmt::format("weight {} of {} records is less than half a record",
                                            weights[i], file.size()),
                        .fix = "raise the weight, or remove the file"});
    }
    result.path_ += (i > 0 ? ", " : "") + file.path_;
    identity += fmt::format("{} {}\n", file.content_hash_, weights[i]);
    result.warnings_.insert(result.warnings_.end(), file.warnings_.begin(), file.warnings_.end());
  }
  result.content_hash_ = content_hash_of(identity);
  return result;
}

void Dataset::offer_classes(const std::function<std::string(const std::string&)>& label_of) {
  const auto classes = std::make_shared<const ClassNames>(samples_);
  std::map<std::string, Strings> by_label;
  for (const std::string& name : classes->all())
    by_label[label_of(name)].push_back(lower_case(name));
  FileSet files;
  std::map<std::string, std::set<std::string>> by_image;
  for (const Sample& sample : samples_) {
    for (const std::string& path : sample.image_paths) {
      std::set<std::string>& names = by_image[files.add(path)];
      for (const SceneObject& object : sample.objects) {
        const Strings& same = by_label[label_of(object.desc)];
        names.insert(same.begin(), same.end());
      }
    }
  }
  for (Sample& sample : samples_) {
    sample.classes = classes;
    for (const std::string& path : sample.image_paths) {
      const std::set<std::string>& names = by_image[files.add(path)];
      sample.image_names.insert(sample.image_names.end(), names.begin(), names.end());
    }
  }
}

Dataset Dataset::copy_without(const std::vector<int64_t>& sample_indices) const {
  Dataset result = *this;
  result.samples_.clear();
  for (MixturePart& part : result.parts_) {
    const int64_t begin = part.begin, end = part.end;
    part.begin = result.size();
    for (int64_t i = begin; i < end; ++i) {
      if (!std::ranges::binary_search(sample_indices, i)) result.samples_.push_back(samples_[i]);
    }
    part.end = result.size();
  }
  return result;
}

ImageCounts Dataset::validate_images(const PatchOptions& options) const {
  ProblemList problems = problems_of(path_);
  ImageCounts counts;
  for (const Sample& sample : samples_)
    collect(sample, problems, [&] { check_image_sizes(sample, options, counts); });
  problems.throw_if_any();
  return counts;
}

int64_t Dataset::decode_images(int64_t most) const {
  ProblemList problems = problems_of(path_);
  int64_t num_decoded = 0;
  const int64_t num_looks = std::min(most, size());
  for (int64_t i = 0; i < num_looks; ++i) {
    throw_if_interrupted();
    const Sample& sample = samples_[i * size() / num_looks];
    collect(sample, problems, [&] {
      for (const std::string& path : sample.image_paths) load_image(path);
      num_decoded += std::ssize(sample.image_paths);
    });
  }
  problems.throw_if_any();
  return num_decoded;
}

Strings image_warnings(const ImageCounts& counts, const std::string& path) {
  Strings texts;
  if (counts.num_deep_grey > 0) {
    texts.push_back(fmt::format(
        "{} images of {} are 16-bit grey: every level above 255 becomes white, as in Pillow; "
        "scale them to 8 bits unless serving sees them so too",
        counts.num_deep_grey, path));
  }
  if (counts.num_hidden_turns > 0) {
    texts.push_back(fmt::format(
        "{} images of {} are stored turned (EXIF) and square, mirrored or turned by half: they are "
        "turned as viewers show them, and no size shows whether their boxes were drawn so; look at "
        "them with `rematch data show`",
        counts.num_hidden_turns, path));
  }
  return texts;
}

std::vector<ImageRef> image_refs(const Sample& sample, const PatchOptions& options) {
  const GridThw grid_thw = processed_grid(
      {.width_px = sample.width_px, .height_px = sample.height_px}, options, sample.where);
  std::vector<ImageRef> refs;
  for (const std::string& path : sample.image_paths)
    refs.push_back({.path = path, .grid_thw = grid_thw, .change = sample.change});
  return refs;
}

}  // namespace rematch
