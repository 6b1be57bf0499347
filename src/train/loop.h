#pragma once
#include "data/windows.h"
#include "ranks/group.h"
#include "estep/segment_source.h"
#include "evaluate/evaluate.h"
#include "mstep/mstep.h"
#include "pack/packer.h"
#include "resume/fingerprint.h"
#include "train/cadence.h"
#include "train/checkpoints.h"
#include "train/long_segments.h"
#include "train/rollout_buffer.h"
#include "train/run_log.h"
#include "train/window_cleanup.h"

namespace rematch {

/// The parts that the loop uses; assembled in assembly/run.cc.
struct TrainParts {
  WindowStream& windows;   ///< which samples come next
  SegmentSource& source;   ///< E-step: samples → segments
  Packer& packer;          ///< segments → rows; the carry buffer
  RolloutBuffer& buffer;   ///< the current window
  MStep& mstep;            ///< rows → one optimizer update
  WindowCleanup& cleanup;  ///< what is freed after the last update on a window
  const Cadence& cadence;  ///< when to log, evaluate, save and stop
  Evaluation* evaluation;  ///< null when there is nothing to evaluate on
  Checkpoints& checkpoints;
  const Fingerprint& fingerprint;  ///< identity of the run, part of a checkpoint
  RunLog& log;
  TrainerState& state;
  bool save_on_best = false;    ///< save_strategy: best
  bool evaluate_first = false;  ///< eval_on_start
  /// the run ends after an evaluation that is worse than the start
  bool stop_on_harm = false;
  Group& group = alone();  ///< the ranks that share the windows
  /// null: the source refuses segments that are too long
  const LongSegments* long_segments = nullptr;
  /// the evaluation after state.global_step is not finished; part of a checkpoint
  bool evaluation_pending = false;
};

/// Trains until the cadence says stop. The algorithm of this program, on one page.
/// Continues from the current state of its parts: at the start, or restored from a checkpoint in
/// the middle of a window.
/// @throws UserError; Interrupted after the state has been saved (BEHAVIOUR 17.4)
void train_loop(TrainParts& parts);

}  // namespace rematch
