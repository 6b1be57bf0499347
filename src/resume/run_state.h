#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/state_files.h"
#include "data/windows.h"
#include "flow/segment.h"
#include "pack/packer.h"
#include "resume/fingerprint.h"
#include "resume/trainer_state.h"

namespace rematch {

// Without its weights, a run's state consists of:
// - TrainerState, for other programs too: trainer_state.json (resume/trainer_state.h)
// - RunState, for this program only: training_state/state.json
// - the optimizer's tensors, stored with RunState as StateFiles (checkpoint/state_files.h)
// LoadedCheckpoint is all of it read back.

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
  std::vector<std::shared_ptr<const Segment>> waiting;
  PackingSummary packing;           ///< Packer::summary
  bool evaluation_pending = false;  ///< the evaluation after num_steps is not finished
  Fingerprint fingerprint;
};

/// Converts a run's state and the optimizer's tensors to files. A segment that appears several
/// times is stored once.
/// @param optimizer  AdamW::state()
StateFiles to_state_files(const RunState& run, NamedTensors optimizer);

/// Inverse of to_state_files, with the same sharing of segments.
/// @param where       path of the document, for errors (state_document_path)
/// @param vocab_size  token ids must be below it
/// @throws UserError (data) for anything that to_state_files cannot have written: wrong types,
/// counts, ranges, missing or unknown keys
RunState to_run_state(const StateFiles& files, const std::string& where, int64_t vocab_size);

/// Reads only the fingerprint of a checkpoint. Cost: one JSON document.
/// @throws UserError (data) if it is missing or damaged
Fingerprint read_saved_fingerprint(const std::string& checkpoint_dir);

/// A whole checkpoint, except the weights.
struct LoadedCheckpoint {
  std::string path;  ///< of the checkpoint
  TrainerState trainer;
  RunState run;
  /// of all ranks that wrote it; for AdamW::load_state, with run.num_steps
  NamedTensors optimizer;
};

/// Reads trainer_state.json and training_state/ of a checkpoint and checks that they match.
/// @param vocab_size  of the resumed model. @param now  the rank that resumes (select_shard())
/// @throws UserError (data) if anything is missing, damaged or inconsistent
LoadedCheckpoint read_checkpoint(const std::string& checkpoint_dir, int64_t vocab_size,
                                 const StateShard& now = {});

}  // namespace rematch
