#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "checkpoint/train_state.h"
#include "data/windows.h"
#include "flow/segment.h"
#include "pack/packer.h"
#include "resume/fingerprint.h"
#include "resume/trainer_state.h"

namespace rematch {

/// What a run must remember beyond weights, optimizer and TrainerState to go on as if it had never stopped. There is no state of a random
/// generator in it: every draw is a function of the seed, the sample and the epoch (base/random.h).
struct RunState {
  int64_t num_steps = 0;                                ///< finished optimizer steps (AdamW::num_steps, where the schedule stands)
  WindowCursor cursor;                                  ///< the window that comes after the open one (WindowStream::cursor)
  std::optional<OpenWindow> open;                       ///< the window at work (RolloutBuffer::state)
  std::vector<std::shared_ptr<const Segment>> waiting;  ///< carry buffer, oldest first (Packer::waiting)
  PackingSummary packing;                               ///< Packer::summary
  bool evaluation_pending = false;                      ///< TrainParts::evaluation_pending
  Fingerprint fingerprint;
};

/// Packs a state and the optimizer's tensors for write_train_state. A segment that stands in several places is stored once.
/// @param optimizer  AdamW::state()
TrainState to_train_state(const RunState& run, NamedTensors optimizer);

/// Unpacks what to_train_state made. The segments are as they were, and as shared as they were.
/// @param where       path of the document, for errors (train_state_path)
/// @param vocab_size  token ids must lie below it
/// @throws UserError (data) for anything that to_train_state cannot have written: wrong types, counts, ranges, missing or unknown keys
RunState run_state_of(const TrainState& state, const std::string& where, int64_t vocab_size);

/// A checkpoint read whole, but for the weights.
struct ResumePoint {
  std::string path;  ///< of the checkpoint
  TrainerState trainer;
  RunState run;
  NamedTensors optimizer;  ///< for AdamW::load_state, with run.num_steps
};

/// Reads trainer_state.json and the training state of a checkpoint and holds them against each other.
/// @param vocab_size  of the model that goes on
/// @throws UserError (data) when anything is missing, damaged or contradicts the rest
ResumePoint read_resume_point(const std::string& checkpoint_dir, int64_t vocab_size);

}  // namespace rematch
