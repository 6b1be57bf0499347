#include "assembly/skipping.h"

#include <fmt/core.h>

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
#include "dist/agreement.h"
#include "estep/skipping_source.h"
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

/// `skipped.jsonl`: warns about each bad sample of a run and lists it, once.
class SkippedList {
 public:
  explicit SkippedList(const Session& session)
      : file_(join_path(session.settings.output.run_dir, "skipped.jsonl")), terminal_(session.terminal) {}
  void note(const Sample& sample, const UserError& error);

 private:
  AppendFile file_;
  Terminal& terminal_;
  std::set<int64_t> noted_;
};

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

void SkippedList::note(const Sample& sample, const UserError& error) {
  if (!noted_.insert(sample.sample_id).second) return;
  const Problem& problem = error.problems().front();
  terminal_.warn(fmt::format("skipped {}: {} ({}: {})", sample.where, problem.error, problem.where, problem.what));
  file_.append(line_of(sample, error));
}

/// What the list says of a segment's sample, which need not be among the data any more.
Sample sample_of(const Segment& segment) {
  Sample sample{.sample_id = segment.sample_id, .image_paths = {}, .objects = {}, .where = segment.where};
  for (const ImageRef& image : segment.images) sample.image_paths.push_back(image.path);
  return sample;
}

}  // namespace

std::unique_ptr<SegmentSource> skipping_bad_samples(std::unique_ptr<SegmentSource> source, const Session& session, Group& group) {
  if (session.settings.data.on_bad_sample != OnBadSample::kSkip) return source;
  const auto on_skip = [list = std::make_shared<SkippedList>(session)](const Sample& sample, const UserError& error) {
    list->note(sample, error);
  };
  const auto gather = [&group](const std::function<std::string()>& mine) {
    std::string text;
    together(group, [&] { text = mine(); });
    return group.all_gather(std::move(text));
  };
  return std::make_unique<SkippingSource>(std::move(source), *session.train_data, *session.pixels, session.patches, on_skip,
                                          SkippingSource::Ranks{.rank = group.rank(), .gather = gather});
}

void drop_bad_segments(RunState& run, const Session& session) {
  if (session.settings.data.on_bad_sample != OnBadSample::kSkip) return;
  SkippedList list(session);
  const auto is_bad = [&](const std::shared_ptr<const Segment>& segment) {
    try {
      for (const ImageRef& image : segment->images) session.pixels->get(image);
      return false;
    } catch (const UserError& error) {
      list.note(sample_of(*segment), error);
      return true;
    }
  };
  std::erase_if(run.waiting, is_bad);
  if (!run.open) return;
  std::vector<PackedRow>& rows = run.open->window.rows;
  const bool had_rows = !rows.empty();
  for (PackedRow& row : rows) std::erase_if(row.segments, is_bad);
  std::erase_if(rows, [](const PackedRow& row) { return row.segments.empty(); });
  if (!rows.empty() || !had_rows) return;
  throw UserError(ErrorKind::kData, {.error = "no sample of the window that the run continues can be used",
                                     .where = session.train_data->path(),
                                     .what = fmt::format("all samples of window {} are bad", run.open->window.window_idx),
                                     .fix = "check that the images are still there (is a disk unmounted?), then resume"});
}

}  // namespace rematch
