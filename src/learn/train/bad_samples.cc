#include "learn/train/bad_samples.h"

#include <fmt/core.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/content_key.h"
#include "base/file.h"
#include "base/json.h"
#include "base/out_of_resources.h"
#include "engine/ranks/gather.h"
#include "learn/augment/augmentation.h"
#include "learn/estep/teach/segment_checks.h"

namespace rematch {
namespace {

/// Hash of a file's bytes; null when it cannot be read.
Json file_hash(const std::string& path) {
  try {
    return content_hash_of(read_file(path));
  } catch (const UserError&) {
    return nullptr;
  }
}

std::string list_line(const Sample& sample, const UserError& error) {
  const Problem& problem = error.problems().front();
  Json line;
  line["sample_id"] = sample.sample_id;
  line["record"] = sample.where;
  line["error"] = problem.error;
  line["what"] = problem.what;
  line["images"] = sample.image_paths;
  line["xxh3"] = Json::array();
  for (const std::string& path : sample.image_paths) line["xxh3"].push_back(file_hash(path));
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// Sample of a segment for skipped.jsonl. The sample itself may no longer be in the data.
Sample listed_sample(const Segment& segment) {
  Sample sample{.sample_id = segment.sample_id, .where = segment.where};
  for (const ImageRef& image : segment.images) sample.image_paths.push_back(image.path);
  return sample;
}

}  // namespace

BadSamples::BadSamples(const Dataset& data, PixelStore& pixels, Terminal& terminal, Group& group,
                       Options options)
    : data_(data),
      pixels_(pixels),
      terminal_(terminal),
      group_(group),
      options_(std::move(options)) {
  if (options_.skips)
    list_ = std::make_unique<AppendFile>(join_path(options_.run_dir, "skipped.jsonl"));
}

void BadSamples::note(const Sample& sample, const UserError& error) {
  if (!noted_.insert(sample.sample_id).second) return;
  const Problem& problem = error.problems().front();
  terminal_.warn(fmt::format("skipped {}: {} ({}: {})", sample.where, problem.error, problem.where,
                             problem.what));
  list_->append(list_line(sample, error));
}

bool BadSamples::can_load(const std::vector<ImageRef>& images, const Sample& sample) {
  try {
    for (const ImageRef& image : images) pixels_.get(image);
    return true;
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    note(sample, error);
    return false;
  }
}

Sample BadSamples::shown_sample(int64_t index, int64_t epoch) const {
  return augment_sample(data_.samples()[index], options_.augment, options_.seed, epoch);
}

bool BadSamples::is_too_long(const Segment& segment) {
  try {
    check_encoded_len(segment, options_.max_length);
    return false;
  } catch (const SegmentTooLong& error) {
    note(listed_sample(segment), error);
    return true;
  }
}

void BadSamples::refuse_window(int64_t window_idx) const {
  throw BadSample(
      ErrorKind::kData,
      {.error = "no sample of a window can be used",
       .where = data_.path(),
       .what = fmt::format("all samples of window {} are bad", window_idx),
       .fix = "check that the images are still there (is a disk unmounted?), then resume"});
}

WindowPlan BadSamples::drop_unreadable(WindowPlan plan, MetricsBag& metrics) {
  if (!list_) return plan;
  std::vector<ImageRef> images;
  for (const int64_t index : plan.samples()) {
    for (ImageRef& image : image_refs(shown_sample(index, plan.epoch), options_.patches))
      images.push_back(std::move(image));
  }
  pixels_.prefetch(images);

  int64_t num_skipped = 0;
  for (auto& micro_batch : plan.micro_batches) {
    num_skipped += std::erase_if(micro_batch, [&](int64_t index) {
      const Sample sample = shown_sample(index, plan.epoch);
      return !can_load(image_refs(sample, options_.patches), sample);
    });
  }
  group_.all_reduce(std::span<int64_t>(&num_skipped, 1));
  MicroBatches kept = in_window_order(gather(group_, plan.micro_batches));
  std::erase_if(kept, [](const auto& micro_batch) { return micro_batch.empty(); });
  const size_t num_kept = kept.size();
  plan.micro_batches = own_part(std::move(kept), group_.rank(), group_.size());
  if (group_.rank() == 0) metrics.add("data/skipped_samples", num_skipped);
  if (num_kept > 0 || num_skipped == 0) return plan;
  refuse_window(plan.window_idx);
}

WindowSegments BadSamples::drop_too_long(WindowSegments segments, MetricsBag& metrics) {
  if (!list_ || options_.max_length == 0) return segments;
  std::array<int64_t, 2> counts{};  // left out, kept; on all ranks
  for (auto& micro_batch : segments) {
    counts[0] += static_cast<int64_t>(
        std::erase_if(micro_batch, [this](const auto& segment) { return is_too_long(*segment); }));
    counts[1] += std::ssize(micro_batch);
  }
  group_.all_reduce(counts);
  if (counts[0] == 0) return segments;
  if (group_.rank() == 0) metrics.add("data/skipped_samples", counts[0]);
  if (counts[1] > 0) return segments;
  throw BadSample(ErrorKind::kData,
                  {.error = "no segment of a window can be used",
                   .where = "global_max_length",
                   .what = fmt::format("all {} segments are longer than it", counts[0]),
                   .fix = "raise `global_max_length` or lower `max_new_tokens`"});
}

void BadSamples::drop_from(RunState& run) {
  if (!list_) return;
  const auto is_dropped = [this](const SegmentPtr& segment) {
    return !can_load(segment->images, listed_sample(*segment));
  };
  std::erase_if(run.waiting, is_dropped);
  std::array<int64_t, 2> num_rows{};  // open window, all ranks: before and after
  if (run.open) {
    std::vector<PackedRow>& rows = run.open->window.rows;
    num_rows[0] = std::ssize(rows);
    for (PackedRow& row : rows) std::erase_if(row.segments, is_dropped);
    std::erase_if(rows, [](const PackedRow& row) { return row.segments.empty(); });
    num_rows[1] = std::ssize(rows);
  }
  group_.all_reduce(num_rows);
  if (num_rows[1] > 0 || num_rows[0] == 0) return;
  refuse_window(run.open ? run.open->window.window_idx : run.cursor.window_idx);
}

}  // namespace rematch
