#pragma once
#include <string>
#include <vector>

#include "checkpoint/state_files.h"
#include "resume/run_state.h"

namespace rematch {

/// The part of a run's state that a rank resumes with. As many ranks as wrote the parts: its own.
/// Else the rows of an open window are distributed again, in the window's order (row t of each rank
/// in turn), which is exact when every micro-batch is a row; packing totals go to rank 0.
/// @param parts  of all ranks that wrote the checkpoint, by rank. @param now  rank and number of
/// ranks of this run. @param where  its path
/// @throws UserError (data) when segments wait in carry buffers, which belong to their ranks, or
/// the parts are of different steps
RunState part_for(std::vector<RunState> parts, const StatePart& now, const std::string& where);

}  // namespace rematch
