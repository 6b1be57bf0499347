#include "resume/run_state.h"

#include <fmt/core.h>

#include <filesystem>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/json_fields.h"
#include "resume/shards.h"
#include "resume/segment_store.h"

namespace rematch {
namespace {

constexpr int64_t kVersion = 1;

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Segments = std::vector<std::shared_ptr<const Segment>>;

Json pairs_json(const Pairs& pairs) {
  Json object = Json::object();
  for (const auto& [name, value] : pairs) {
    REMATCH_CHECK(!object.contains(name), name);
    object[name] = bytes_json(value);
  }
  return object;
}

Json window_json(const OpenWindow& open, SegmentWriter& segments) {
  Json rows = Json::array();
  for (const PackedRow& row : open.window.rows) rows.push_back(segments.add(row.segments));
  return {{"window_idx", open.window.window_idx},
          {"epoch", open.window.epoch},
          {"is_partial", open.window.is_partial},
          {"last_of_epoch", open.last_of_epoch},
          {"step0", open.step0},
          {"completed_steps", open.completed_steps},
          {"rows", std::move(rows)}};
}

Json packing_json(const PackingSummary& packing) {
  return {{"num_rows", packing.num_rows},
          {"num_segments", packing.num_segments},
          {"num_tokens", packing.num_tokens},
          {"padded_tokens", packing.padded_tokens},
          {"num_underfilled", packing.num_underfilled}};
}

JsonOrigin make_origin(const std::string& path) {
  return {.path = path,
          .error = "the training state of a checkpoint cannot be read",
          .fix =
              "resume from another checkpoint, or start from the weights of this one: "
              "`model.model` without resume_from_checkpoint"};
}

Pairs read_pairs(JsonFields& fields, const std::string& key, const JsonOrigin& origin) {
  const Json& object = fields.at(key);
  const JsonFields checked(object, origin, fields.place_of(key));
  Pairs pairs;
  for (const auto& item : object.items())
    pairs.emplace_back(item.key(), bytes_of(item.value(), origin, checked.place_of(item.key())));
  return pairs;
}

WindowCursor read_cursor(JsonFields fields) {
  const WindowCursor cursor{.epoch = fields.integer("epoch", 0),
                            .next_window_in_epoch = fields.integer("next_window_in_epoch", 0),
                            .window_idx = fields.integer("window_idx", 0)};
  fields.finish();
  return cursor;
}

PackingSummary read_packing(JsonFields fields) {
  const PackingSummary packing{.num_rows = fields.integer("num_rows", 0),
                               .num_segments = fields.integer("num_segments", 0),
                               .num_tokens = fields.integer("num_tokens", 0),
                               .padded_tokens = fields.integer("padded_tokens", 0),
                               .num_underfilled = fields.integer("num_underfilled", 0)};
  fields.finish();
  return packing;
}

Fingerprint read_fingerprint(JsonFields fields, const JsonOrigin& origin) {
  const Fingerprint fingerprint{.fixed = read_pairs(fields, "fixed", origin),
                                .settings = read_pairs(fields, "settings", origin)};
  fields.finish();
  return fingerprint;
}

std::vector<PackedRow> read_rows(JsonFields& fields, const Segments& segments,
                                 const JsonOrigin& origin) {
  const Json& list = fields.list("rows");
  std::vector<PackedRow> rows;
  std::unordered_set<const Segment*> seen;
  for (size_t i = 0; i < list.size(); ++i) {
    const std::string place = fmt::format("{}[{}]", fields.place_of("rows"), i);
    rows.push_back({segments_by_number(list[i], segments, origin, place)});
    if (rows.back().segments.empty()) throw_json_error(origin, place, "a row without segments");
    for (const auto& segment : rows.back().segments) {
      if (!seen.insert(segment.get()).second)
        throw_json_error(origin, place, "a segment appears in two rows");
    }
  }
  return rows;
}

OpenWindow read_window(JsonFields fields, const RunState& run, const Segments& segments,
                       const JsonOrigin& origin) {
  OpenWindow open;
  open.window.window_idx = fields.integer("window_idx", 0, run.cursor.window_idx - 1);
  open.window.epoch = fields.integer("epoch", 0, run.cursor.epoch);
  open.window.is_partial = fields.boolean("is_partial");
  open.last_of_epoch = fields.boolean("last_of_epoch");
  open.step0 = fields.integer("step0", 0, run.num_steps);
  open.completed_steps =
      fields.integer("completed_steps", run.num_steps - open.step0, run.num_steps - open.step0);
  open.window.rows = read_rows(fields, segments, origin);
  fields.finish();
  return open;
}

/// Refuses a document with unused segments.
void require_all_used(const RunState& run, const Segments& segments, const JsonOrigin& origin) {
  std::unordered_set<const Segment*> used;
  for (const auto& segment : run.waiting) used.insert(segment.get());
  if (run.open) {
    for (const PackedRow& row : run.open->window.rows) {
      for (const auto& segment : row.segments) used.insert(segment.get());
    }
  }
  for (size_t i = 0; i < segments.size(); ++i) {
    if (used.count(segments[i].get()) == 0) {
      throw_json_error(origin, fmt::format("segments[{}]", i),
                       "it is in neither a row nor the carry buffer");
    }
  }
}

}  // namespace

StateFiles to_state_files(const RunState& run, NamedTensors optimizer) {
  SegmentWriter segments;
  Json root;
  root["version"] = kVersion;
  root["num_steps"] = run.num_steps;
  root["cursor"] = {{"epoch", run.cursor.epoch},
                    {"next_window_in_epoch", run.cursor.next_window_in_epoch},
                    {"window_idx", run.cursor.window_idx}};
  root["open_window"] = run.open ? window_json(*run.open, segments) : Json(nullptr);
  root["waiting"] = segments.add(run.waiting);
  root["segments"] = segments.descriptions();
  root["packing"] = packing_json(run.packing);
  root["evaluation_pending"] = run.evaluation_pending;
  root["fingerprint"] = {{"fixed", pairs_json(run.fingerprint.fixed)},
                         {"settings", pairs_json(run.fingerprint.settings)}};
  return {.document = python_json(root, 2) + "\n",
          .optimizer = std::move(optimizer),
          .segments = segments.tensors()};
}

RunState to_run_state(const StateFiles& files, const std::string& where, int64_t vocab_size) {
  const JsonOrigin origin = make_origin(where);
  const Json root = parse_document(files.document, origin);
  JsonFields fields(root, origin);
  fields.integer("version", kVersion, kVersion);
  RunState run;
  run.num_steps = fields.integer("num_steps", 0);
  run.cursor = read_cursor(fields.object("cursor"));
  run.packing = read_packing(fields.object("packing"));
  run.evaluation_pending = fields.boolean("evaluation_pending");
  run.fingerprint = read_fingerprint(fields.object("fingerprint"), origin);
  const Segments segments =
      read_segments(fields.list("segments"), files.segments, vocab_size, origin);
  run.waiting = segments_by_number(fields.list("waiting"), segments, origin, "waiting");
  if (!fields.at("open_window").is_null())
    run.open = read_window(fields.object("open_window"), run, segments, origin);
  fields.finish();
  require_all_used(run, segments, origin);
  return run;
}

Fingerprint read_saved_fingerprint(const std::string& checkpoint_dir) {
  const JsonOrigin origin = make_origin(state_document_path(checkpoint_dir));
  const Json root = parse_document(read_state_document(checkpoint_dir), origin);
  return read_fingerprint(JsonFields(root, origin).object("fingerprint"), origin);
}

LoadedCheckpoint read_checkpoint(const std::string& checkpoint_dir, int64_t vocab_size,
                                 const StateShard& now) {
  std::vector<StateFiles> files = read_state_shards(checkpoint_dir);
  LoadedCheckpoint loaded;
  loaded.path = checkpoint_dir;
  std::vector<RunState> runs;
  for (StateFiles& shard : files) {
    const StateShard which{static_cast<int>(runs.size()), static_cast<int>(files.size())};
    runs.push_back(to_run_state(shard, state_document_path(checkpoint_dir, which), vocab_size));
    std::move(shard.optimizer.begin(), shard.optimizer.end(), std::back_inserter(loaded.optimizer));
  }
  loaded.run = select_shard(std::move(runs), now, checkpoint_dir);
  const std::string trainer_path = join_path(checkpoint_dir, "trainer_state.json");
  if (!std::filesystem::is_regular_file(trainer_path))
    throw_json_error(make_origin(trainer_path), "", "the file is missing");
  loaded.trainer = TrainerState::from_json(read_file(trainer_path), trainer_path);
  if (loaded.trainer.global_step != loaded.run.num_steps) {
    JsonOrigin origin = make_origin(trainer_path);
    origin.error = "the files of a checkpoint do not match";
    throw_json_error(origin, "global_step",
                     fmt::format("{}, but the training state is from step {}",
                                 loaded.trainer.global_step, loaded.run.num_steps));
  }
  return loaded;
}

}  // namespace rematch
