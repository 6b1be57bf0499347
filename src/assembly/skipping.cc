#include "assembly/skipping.h"

#include <fmt/core.h>

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/out_of_resources.h"
#include "ranks/phase.h"
#include "estep/skipping_source.h"
#include "estep/target/segment_checks.h"
#include "observe/append_file.h"

namespace rematch {
namespace {

/// Hash of a file's bytes; null when it cannot be read.
Json hash_of(const std::string& path) {
  try {
    return content_hash_of(read_file(path));
  } catch (const UserError&) {
    return nullptr;
  }
}

std::string line_of(const Sample& sample, const UserError& error) {
  const Problem& problem = error.problems().front();
  Json line;
  line["sample_id"] = sample.sample_id;
  line["record"] = sample.where;
  line["error"] = problem.error;
  line["what"] = problem.what;
  line["images"] = sample.image_paths;
  line["xxh3"] = Json::array();
  for (const std::string& path : sample.image_paths) line["xxh3"].push_back(hash_of(path));
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

/// What the list says of a segment's sample, which need not be among the data any more.
Sample sample_of(const Segment& segment) {
  Sample sample{
      .sample_id = segment.sample_id, .image_paths = {}, .objects = {}, .where = segment.where};
  for (const ImageRef& image : segment.images) sample.image_paths.push_back(image.path);
  return sample;
}

}  // namespace

/// `skipped.jsonl`: warns about each bad sample of a run and lists it, once.
class Skipping::List {
 public:
  explicit List(const Session& session)
      : file_(join_path(session.settings.output.run_dir, "skipped.jsonl")),
        terminal_(session.terminal) {}
  void note(const Sample& sample, const UserError& error);

 private:
  AppendFile file_;
  Terminal& terminal_;
  std::set<int64_t> noted_;
};

void Skipping::List::note(const Sample& sample, const UserError& error) {
  if (!noted_.insert(sample.sample_id).second) return;
  const Problem& problem = error.problems().front();
  terminal_.warn(fmt::format("skipped {}: {} ({}: {})", sample.where, problem.error, problem.where,
                             problem.what));
  file_.append(line_of(sample, error));
}

Skipping::Skipping(const Session& session, Group& group) : session_(session), group_(group) {
  if (session.settings.data.on_bad_sample != OnBadSample::kSkip) return;
  together(group, [&] { list_ = std::make_unique<List>(session); });
}

Skipping::~Skipping() = default;

std::unique_ptr<SegmentSource> Skipping::source(std::unique_ptr<SegmentSource> source) {
  if (!list_) return source;
  const auto on_skip = [this](const Sample& sample, const UserError& error) {
    list_->note(sample, error);
  };
  const auto gather = [&group = group_](const std::function<std::string()>& mine) {
    std::string text;
    together(group, [&] { text = mine(); });
    return group.all_gather(std::move(text));
  };
  return std::make_unique<SkippingSource>(
      std::move(source), *session_.train_data, *session_.pixels, session_.patches, on_skip,
      SkippingSource::Ranks{.rank = group_.rank(), .gather = gather});
}

std::unique_ptr<const LongSegments> Skipping::long_segments() {
  if (!list_ || !session_.settings.is_stage_2() || session_.max_length() == 0) return nullptr;
  const auto is_long = [this](const Segment& segment) {
    try {
      check_encoded_len(segment, session_.max_length());
      return false;
    } catch (const SegmentTooLong& error) {
      list_->note(sample_of(segment), error);
      return true;
    }
  };
  return std::make_unique<const LongSegments>(is_long, group_);
}

bool Skipping::is_bad(const Segment& segment) {
  try {
    for (const ImageRef& image : segment.images) session_.pixels->get(image);
    return false;
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    list_->note(sample_of(segment), error);
    return true;
  }
}

void Skipping::drop_from(RunState& run) {
  if (!list_) return;
  std::array<int64_t, 2> num_rows{};  // of the open window on all ranks, before and after
  together(group_, [&] {
    const auto is_dropped = [this](const std::shared_ptr<const Segment>& segment) {
      return is_bad(*segment);
    };
    std::erase_if(run.waiting, is_dropped);
    if (!run.open) return;
    std::vector<PackedRow>& rows = run.open->window.rows;
    num_rows[0] = std::ssize(rows);
    for (PackedRow& row : rows) std::erase_if(row.segments, is_dropped);
    std::erase_if(rows, [](const PackedRow& row) { return row.segments.empty(); });
    num_rows[1] = std::ssize(rows);
  });
  group_.all_reduce(num_rows);
  if (num_rows[1] > 0 || num_rows[0] == 0) return;
  throw UserError(
      ErrorKind::kData,
      {.error = "no sample of the window that the run continues can be used",
       .where = session_.train_data->path(),
       .what = fmt::format("all samples of window {} are bad", run.open->window.window_idx),
       .fix = "check that the images are still there (is a disk unmounted?), then resume"});
}

}  // namespace rematch
