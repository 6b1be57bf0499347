#include "assembly/skipping.h"

#include <fmt/core.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>

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

}  // namespace

std::unique_ptr<SegmentSource> skipping_bad_samples(std::unique_ptr<SegmentSource> source, const Session& session, Group& group) {
  if (session.settings.data.on_bad_sample != OnBadSample::kSkip) return source;
  const auto list = std::make_shared<AppendFile>(join_path(session.settings.output.run_dir, "skipped.jsonl"));
  const auto listed = std::make_shared<std::set<int64_t>>();
  const auto on_skip = [list, listed, &terminal = session.terminal](const Sample& sample, const UserError& error) {
    if (!listed->insert(sample.sample_id).second) return;
    const Problem& problem = error.problems().front();
    terminal.warn(fmt::format("skipped {}: {} ({}: {})", sample.where, problem.error, problem.where, problem.what));
    list->append(line_of(sample, error));
  };
  const auto gather = [&group](const std::function<std::string()>& mine) {
    std::string text;
    together(group, [&] { text = mine(); });
    return group.all_gather(std::move(text));
  };
  return std::make_unique<SkippingSource>(std::move(source), *session.train_data, *session.pixels, session.patches, on_skip,
                                          SkippingSource::Ranks{.rank = group.rank(), .gather = gather});
}

}  // namespace rematch
