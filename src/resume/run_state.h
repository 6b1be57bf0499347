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

// The state of a run, apart from its weights, has two halves:
//
//   TrainerState       read by other programs: trainer_state.json, with transformers' names
//   (resume/trainer_state.h) RunState           read by this program only:
//   training_state/state.json, the place in the data, the open window, the carry buffer
//
// On disk a RunState and the optimizer's tensors are StateFiles (checkpoint/state_files.h); a
// LoadedCheckpoint is all of it read back.

/// What a run needs beyond weights, optimizer and TrainerState to continue as if it had never
/// stopped. There is no state of a random generator: every draw is a function of the seed, the
/// sample and the epoch (base/random.h).
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
  bool evaluation_pending = false;  ///< TrainParts::evaluation_pending
  Fingerprint fingerprint;
};

/// A run's state and the optimizer's tensors as files. A segment that appears in several places is
/// stored once.
/// @param optimizer  AdamW::state()
StateFiles state_files_of(const RunState& run, NamedTensors optimizer);

/// Unpacks the result of state_files_of, with the same sharing of segments.
/// @param where       path of the document, for errors (state_document_path)
/// @param vocab_size  token ids must be below it
/// @throws UserError (data) for anything that state_files_of cannot have written: wrong types,
/// counts, ranges, missing or unknown keys
RunState run_state_of(const StateFiles& files, const std::string& where, int64_t vocab_size);

/// The fingerprint of a checkpoint, which read_checkpoint() would read with everything else. Cost:
/// one JSON document.
/// @throws UserError (data) when it is missing or damaged
Fingerprint read_saved_fingerprint(const std::string& checkpoint_dir);

/// A whole checkpoint, except the weights.
struct LoadedCheckpoint {
  std::string path;  ///< of the checkpoint
  TrainerState trainer;
  RunState run;
  /// of all ranks that wrote it; for AdamW::load_state, with run.num_steps
  NamedTensors optimizer;
};

/// Reads trainer_state.json and training_state/ of a checkpoint and checks them against each other.
/// @param vocab_size  of the resumed model. @param now  the rank that resumes; its run state is
/// part_for() it
/// @throws UserError (data) when anything is missing, damaged or inconsistent
LoadedCheckpoint read_checkpoint(const std::string& checkpoint_dir, int64_t vocab_size,
                                 const StatePart& now = {});

}  // namespace rematch
