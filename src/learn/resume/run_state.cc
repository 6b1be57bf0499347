#include "learn/resume/run_state.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "base/file.h"
#include "base/window_order.h"
#include "learn/estep/teach/segment_checks.h"

namespace rematch {
namespace {

void require(bool holds, const std::string& path, const std::string& what) {
  if (holds) return;
  throw data_error({.error = "the training state of a checkpoint cannot be read",
                    .where = path,
                    .what = what,
                    .fix = "resume from another checkpoint, or start from the weights of this one: "
                           "`model.model` without resume_from_checkpoint"});
}

RunState parse(std::string_view bytes, const std::string& path) {
  std::optional<RunState> run = try_from_wire<RunState>(bytes);
  require(run.has_value(), path,
          fmt::format("its {} bytes are not a training state", bytes.size()));
  return *std::move(run);
}

bool is_usable(const ImageRef& image) {
  const auto are_from = [](int64_t least, const auto& numbers) {
    return std::ranges::all_of(numbers, [&](int64_t number) {
      return least <= number && number <= std::numeric_limits<int>::max();
    });
  };
  return !image.path.empty() && are_from(1, image.grid_thw) && are_from(0, image.change.crop_px) &&
         are_from(0, image.change.color) && image.change.orientation >= 0 &&
         image.change.orientation < 4 * ImageChange::kQuarterTurn;
}

/// Checks that a segment can be trained on.
void check_segment(const Segment& segment, const std::string& path, int64_t vocab_size) {
  const std::string name = sample_name(segment.sample_id, segment.where);
  const auto is_outside = [&](int id) { return id < 0 || id >= vocab_size; };
  require(std::ranges::none_of(segment.token_ids, is_outside) &&
              std::ranges::none_of(segment.labels,
                                   [&](int id) { return id != kIgnoreLabel && is_outside(id); }),
          path, fmt::format("{} has a token outside the vocabulary of {}", name, vocab_size));
  const auto is_length = [&](int64_t length) {
    return 0 <= length && length <= segment.encoded_len();
  };
  require(!segment.token_ids.empty() && is_length(segment.prompt_len) &&
              is_length(segment.prefix_len) && is_length(segment.append_len) &&
              is_length(int64_t{segment.prompt_len} + segment.prefix_len + segment.append_len),
          path, name + " has parts that do not fit its tokens");
  require(std::ranges::all_of(segment.images, is_usable), path,
          name + " has an image that cannot be loaded");
  try {
    check_supervision(segment);
  } catch (const UserError& error) {
    require(false, path, name + ": " + error.problems()[0].error);
  }
}

/// Checks that an open window fits the steps and the cursor of its run.
void check_window(const OpenWindow& open, const RunState& run, const std::string& path) {
  const Window& window = open.window;
  require(0 <= open.step0 && open.completed_steps == run.num_steps - open.step0 &&
              open.completed_steps >= 0 && 0 <= window.window_idx &&
              window.window_idx < run.cursor.window_idx && 0 <= window.epoch &&
              window.epoch <= run.cursor.epoch,
          path,
          fmt::format("window {} of epoch {}, open since step {}, does not fit step {}",
                      window.window_idx, window.epoch, open.step0, run.num_steps));
  for (const PackedRow& row : window.rows)
    require(!row.segments.empty(), path, "a row without segments");
}

void require_same_step(const std::vector<RunState>& shards, const std::string& where) {
  for (const RunState& shard : shards) {
    const RunState& first = shards.front();
    const bool same = shard.num_steps == first.num_steps && shard.cursor == first.cursor &&
                      shard.fingerprint == first.fingerprint &&
                      shard.open.has_value() == first.open.has_value();
    if (same) continue;
    throw data_error(
        {.error = "the ranks' states in a checkpoint do not match",
         .where = where,
         .what = fmt::format("states of step {} and of step {}", first.num_steps, shard.num_steps),
         .fix = "resume from another checkpoint"});
  }
}

void refuse_waiting(const std::vector<RunState>& shards, int size_now, const std::string& where) {
  size_t num_waiting = 0;
  for (const RunState& shard : shards) num_waiting += shard.waiting.size();
  if (num_waiting == 0) return;
  throw data_error(
      {.error = "the carry buffers of a checkpoint belong to another number of ranks",
       .where = where,
       .what = fmt::format("written by {} ranks, {} segments wait in their carry buffers; now {}",
                           shards.size(), num_waiting, size_now),
       .fix = fmt::format("resume with {} ranks, or start from its weights alone; "
                          "`post_rollout_pack_scope: window` keeps no segments from window to "
                          "window",
                          shards.size())});
}

}  // namespace

RunState read_run_state(std::string_view bytes, const std::string& path, int64_t vocab_size) {
  RunState run = parse(bytes, path);
  require(run.num_steps >= 0, path, fmt::format("it is from step {}", run.num_steps));
  const int64_t num_logged = run.log_interval.num_steps;
  require(0 <= num_logged && num_logged <= run.num_steps, path,
          fmt::format("{} of {} steps wait for a log line", num_logged, run.num_steps));
  std::vector<PackedRow> rows{{run.waiting}};
  if (run.open) {
    check_window(*run.open, run, path);
    rows.insert(rows.end(), run.open->window.rows.begin(), run.open->window.rows.end());
  }
  for (const PackedRow& row : rows) {
    for (const auto& segment : row.segments) check_segment(*segment, path, vocab_size);
  }
  return run;
}

Fingerprint read_saved_fingerprint(const std::string& checkpoint_dir) {
  const std::string path = run_state_paths(checkpoint_dir).front();
  return parse(read_file(path), path).fingerprint;
}

RunState select_shard(std::vector<RunState> shards, const StateShard& now,
                      const std::string& where) {
  require_same_step(shards, where);
  if (std::ssize(shards) == now.size) return std::move(shards[now.rank]);
  refuse_waiting(shards, now.size, where);
  RunState run = shards.front();
  if (run.open) {
    std::vector<std::vector<PackedRow>> by_rank;
    for (RunState& shard : shards) by_rank.push_back(std::move(shard.open->window.rows));
    run.open->window.rows = own_part(in_window_order(std::move(by_rank)), now.rank, now.size);
  }
  run.packing = {};
  if (now.rank == 0) {
    for (const RunState& shard : shards) run.packing.add(shard.packing);
  }
  return run;
}

LoadedCheckpoint read_checkpoint(const std::string& checkpoint_dir, int64_t vocab_size,
                                 const StateShard& now) {
  std::vector<StateFiles> shards = read_state_shards(checkpoint_dir);
  const Strings paths = run_state_paths(checkpoint_dir);
  LoadedCheckpoint loaded;
  loaded.path = checkpoint_dir;
  std::vector<RunState> runs;
  for (StateFiles& shard : shards) {
    runs.push_back(read_run_state(shard.run, paths[runs.size()], vocab_size));
    std::ranges::move(shard.optimizer, std::back_inserter(loaded.optimizer));
  }
  loaded.run = select_shard(std::move(runs), now, checkpoint_dir);
  const std::string path = join_path(checkpoint_dir, "trainer_state.json");
  require(is_file(path), path, "the file is missing");
  loaded.progress = TrainerState::from_json(read_file(path), path).progress;
  require(loaded.progress.global_step == loaded.run.num_steps, path,
          fmt::format("global_step {}, but the training state is from step {}",
                      loaded.progress.global_step, loaded.run.num_steps));
  return loaded;
}

}  // namespace rematch
