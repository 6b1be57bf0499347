#include "learn/resume/shards.h"

#include <fmt/core.h>

#include <utility>

#include "base/error.h"
#include "base/window_order.h"

namespace rematch {
namespace {

void require_same_step(const std::vector<RunState>& shards, const std::string& where) {
  for (const RunState& shard : shards) {
    const RunState& first = shards.front();
    const bool same = shard.num_steps == first.num_steps && shard.cursor == first.cursor &&
                      shard.fingerprint == first.fingerprint &&
                      shard.open.has_value() == first.open.has_value();
    if (same) continue;
    throw UserError(ErrorKind::kData, {.error = "the ranks' states in a checkpoint do not match",
                                       .where = where,
                                       .what = fmt::format("states of step {} and of step {}",
                                                           first.num_steps, shard.num_steps),
                                       .fix = "resume from another checkpoint"});
  }
}

void refuse_waiting(const std::vector<RunState>& shards, int size_now, const std::string& where) {
  size_t num_waiting = 0;
  for (const RunState& shard : shards) num_waiting += shard.waiting.size();
  if (num_waiting == 0) return;
  throw UserError(
      ErrorKind::kData,
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

RunState select_shard(std::vector<RunState> shards, const StateShard& now,
                      const std::string& where) {
  require_same_step(shards, where);
  if (std::ssize(shards) == now.size) return std::move(shards[static_cast<size_t>(now.rank)]);
  refuse_waiting(shards, now.size, where);
  RunState run = shards.front();
  if (run.open) {
    std::vector<std::vector<PackedRow>> by_rank;
    for (RunState& shard : shards) by_rank.push_back(std::move(shard.open->window.rows));
    std::vector<PackedRow> rows = in_window_order(std::move(by_rank));
    run.open->window.rows.clear();
    for (size_t i = static_cast<size_t>(now.rank); i < rows.size();
         i += static_cast<size_t>(now.size)) {
      run.open->window.rows.push_back(std::move(rows[i]));
    }
  }
  run.packing = {};
  if (now.rank == 0) {
    for (const RunState& shard : shards) run.packing.add(shard.packing);
  }
  return run;
}

}  // namespace rematch
