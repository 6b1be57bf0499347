#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/flow/segment.h"
#include "base/metrics.h"
#include "base/wire.h"
#include "learn/data/windows.h"
#include "learn/pack/packer.h"
#include "learn/resume/fingerprint.h"
#include "learn/resume/trainer_state.h"
#include "model/checkpoint/state_files.h"

namespace rematch {

// Without its weights, a run's state consists of:
// - TrainerState, for other programs too: trainer_state.json (learn/resume/trainer_state.h)
// - RunState, for this version of the program only: training_state/state.bin
// - the optimizer's tensors, stored with RunState as StateFiles (model/checkpoint/state_files.h)
// LoadedCheckpoint is all of it read back.

/// The steps since the last log line, which will be part of the next one.
struct LogInterval {
  int64_t num_steps = 0;
  MetricsBag metrics;  ///< of all of them, in order

  void add(const MetricsBag& step) {
    metrics.merge(step);
    ++num_steps;
  }

  friend void fields(auto& wire, LogInterval& interval) {
    wire(interval.num_steps, interval.metrics);
  }
};

/// Position in the data, open window and carry buffer: with weights, optimizer and TrainerState, a
/// run continues as if it had never stopped. No random generator has a state: every draw is a
/// function of the seed, the sample and the epoch (base/random.h).
struct RunState {
  /// finished optimizer steps (AdamW::num_steps, position in the schedule)
  int64_t num_steps = 0;
  /// the window after the open one (WindowStream::cursor)
  WindowCursor cursor;
  /// the current window (RolloutBuffer::state)
  std::optional<OpenWindow> open;
  /// carry buffer, oldest first (Packer::waiting)
  Segments waiting;
  PackingSummary packing;           ///< Packer::summary
  bool evaluation_pending = false;  ///< the evaluation after num_steps is not finished
  LogInterval log_interval;         ///< RunLog::interval
  Fingerprint fingerprint;

  friend void fields(auto& wire, RunState& run) {
    wire(run.num_steps, run.cursor, run.open, run.waiting, run.packing, run.evaluation_pending,
         run.log_interval, run.fingerprint);
  }
};

/// Reads the bytes that to_wire() made of a run's state.
/// @param path        of their file, for errors (run_state_paths)
/// @param vocab_size  token ids must be below it
/// @throws UserError (data) for damaged bytes and for a state that no run can continue from
RunState read_run_state(std::string_view bytes, const std::string& path, int64_t vocab_size);

/// Reads the fingerprint of a checkpoint. Cost: the first rank's RunState.
/// @throws UserError (data) if it is missing or damaged
Fingerprint read_saved_fingerprint(const std::string& checkpoint_dir);

/// A whole checkpoint, except the weights.
struct LoadedCheckpoint {
  std::string path;  ///< of the checkpoint
  RunProgress progress;
  RunState run;
  /// of all ranks that wrote it; for AdamW::load_state, with run.num_steps
  NamedTensors optimizer;
};

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

/// Reads trainer_state.json and training_state/ of a checkpoint and checks that they match.
/// @param vocab_size  of the resumed model.
/// @param now  the rank that resumes (select_shard())
/// @throws UserError (data) if anything is missing, damaged or inconsistent
LoadedCheckpoint read_checkpoint(const std::string& checkpoint_dir, int64_t vocab_size,
                                 const StateShard& now = {});

}  // namespace rematch
