#include "resume/parts.h"

#include <fmt/core.h>

#include <utility>

#include "base/error.h"

namespace rematch {
namespace {

void require_one_run(const std::vector<RunState>& parts, const std::string& where) {
  for (const RunState& part : parts) {
    const RunState& first = parts.front();
    const bool same = part.num_steps == first.num_steps && part.cursor == first.cursor &&
                      part.fingerprint == first.fingerprint &&
                      part.open.has_value() == first.open.has_value();
    if (same) continue;
    throw UserError(ErrorKind::kData, {.error = "the ranks' parts of a checkpoint do not match",
                                       .where = where,
                                       .what = fmt::format("parts of step {} and of step {}",
                                                           first.num_steps, part.num_steps),
                                       .fix = "resume from another checkpoint"});
  }
}

void refuse_waiting(const std::vector<RunState>& parts, int size_now, const std::string& where) {
  size_t num_waiting = 0;
  for (const RunState& part : parts) num_waiting += part.waiting.size();
  if (num_waiting == 0) return;
  throw UserError(
      ErrorKind::kData,
      {.error = "the carry buffers of a checkpoint belong to another number of ranks",
       .where = where,
       .what = fmt::format("written by {} ranks, {} segments wait in their carry buffers; now {}",
                           parts.size(), num_waiting, size_now),
       .fix = fmt::format("resume with {} ranks, or start from its weights alone; "
                          "`post_rollout_pack_scope: window` keeps no "
                          "segments from window to window",
                          parts.size())});
}

/// The rows of a window in its order.
std::vector<PackedRow> rows_in_turns(std::vector<RunState>& parts) {
  std::vector<PackedRow> rows;
  for (size_t turn = 0;; ++turn) {
    const size_t before = rows.size();
    for (RunState& part : parts) {
      std::vector<PackedRow>& own = part.open->window.rows;
      if (turn < own.size()) rows.push_back(std::move(own[turn]));
    }
    if (rows.size() == before) return rows;
  }
}

}  // namespace

RunState part_for(std::vector<RunState> parts, const StatePart& now, const std::string& where) {
  require_one_run(parts, where);
  if (std::ssize(parts) == now.size) return std::move(parts[static_cast<size_t>(now.rank)]);
  refuse_waiting(parts, now.size, where);
  RunState run = parts.front();
  if (run.open) {
    std::vector<PackedRow> rows = rows_in_turns(parts);
    run.open->window.rows.clear();
    for (size_t i = static_cast<size_t>(now.rank); i < rows.size();
         i += static_cast<size_t>(now.size)) {
      run.open->window.rows.push_back(std::move(rows[i]));
    }
  }
  run.packing = {};
  for (const RunState& part : parts) {
    if (now.rank != 0) break;
    run.packing.num_rows += part.packing.num_rows;
    run.packing.num_segments += part.packing.num_segments;
    run.packing.num_tokens += part.packing.num_tokens;
    run.packing.padded_tokens += part.packing.padded_tokens;
    run.packing.num_underfilled += part.packing.num_underfilled;
  }
  return run;
}

}  // namespace rematch
