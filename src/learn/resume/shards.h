#pragma once
#include <string>
#include <vector>

#include "learn/resume/run_state.h"
#include "model/checkpoint/state_files.h"

namespace rematch {

/// The state that a rank resumes with. With the same number of ranks it is the rank's own.
/// Otherwise the rows of an open window are distributed again in window order (row 0 of each rank,
/// then row 1, …), which is exact if every micro-batch is a row; packing totals go to rank 0.
/// @param shards  of all ranks that wrote the checkpoint, by rank
/// @param now     rank and number of ranks of this run
/// @param where   path of the checkpoint, for errors
/// @throws UserError (data) if segments wait in carry buffers, which belong to their ranks, or the
/// shards are from different steps
RunState select_shard(std::vector<RunState> shards, const StateShard& now,
                      const std::string& where);

}  // namespace rematch
