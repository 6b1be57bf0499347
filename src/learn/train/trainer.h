#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "engine/ranks/group.h"
#include "learn/data/windows.h"
#include "learn/estep/make_target.h"
#include "learn/estep/roll_out.h"
#include "learn/estep/truth_segments.h"
#include "learn/evaluate/evaluate.h"
#include "learn/mstep/mstep.h"
#include "learn/pack/packer.h"
#include "learn/resume/run_state.h"
#include "learn/train/bad_samples.h"
#include "learn/train/cadence.h"
#include "learn/train/checkpoints.h"
#include "learn/train/rollout_buffer.h"
#include "learn/train/run_log.h"
#include "learn/train/step_metrics.h"
#include "model/feature_cache.h"

namespace rematch {

/// The parts of stage 2 that roll out. The engine must outlive the trainer.
struct RolloutParts {
  RolloutScorer scorer;
  RolloutSource source;
  TargetOptions target;
  double share = 1;  ///< `rollout_share`: share of the windows that roll out
  /// observer of the scored rollouts of every window; may be empty
  std::function<void(int64_t step, const std::vector<ScoredRollout>&)> on_rollouts;
};

/// The samples of a run, on their way to rows.
struct Source {
  std::unique_ptr<WindowStream> stream;  ///< which samples come next
  BadSamples bad_samples;                ///< leaves out unusable samples
  std::unique_ptr<TruthSegments> truth;  ///< segments of windows that do not roll out
  Packer packer;                         ///< segments → rows; the carry buffer
  RolloutBuffer buffer;                  ///< the current window
};

/// The step that trains.
struct Update {
  std::unique_ptr<MStep> mstep;            ///< rows → one optimizer update
  std::unique_ptr<FeatureCache> features;  ///< of a reused window; null without reuse
};

/// The log of a run, its evaluations and its checkpoints.
struct Record {
  RunLog& log;
  Cadence cadence;                         ///< when to log, evaluate, save and stop
  std::unique_ptr<Evaluation> evaluation;  ///< null without validation data
  Checkpoints checkpoints;
  Fingerprint fingerprint;  ///< identity of the run, part of a checkpoint
  TrainerState state;
};

/// Reason for the end of a run.
enum class End {
  kNone,       ///< it continues
  kLastStep,   ///< no step is left
  kPatience,   ///< too many evaluations without a new best (`early_stopping_patience`)
  kHarm,       ///< its last evaluation is worse than its start (`stop_on_harm`)
  kInterrupt,  ///< it was interrupted between two steps; its state is saved
};

/// A run: its parts, made by program/assembly/make_trainer.cc, its phases, saving and restoring.
/// train() in learn/train/loop.cc calls it in the order of a step.
class Trainer {
 public:
  /// @param rollouts  nullopt in stage 1
  Trainer(Group& group, Source source, std::optional<RolloutParts> rollouts, Update update,
          Record record);

  // The parts that train() uses.
  WindowStream& stream() { return *source_.stream; }
  BadSamples& bad_samples() { return source_.bad_samples; }
  TruthSegments& truth() { return *source_.truth; }
  Packer& packer() { return source_.packer; }
  const Packer& packer() const { return source_.packer; }
  RolloutBuffer& buffer() { return source_.buffer; }
  MStep& mstep() { return *update_.mstep; }

  End end() const { return end_; }
  bool is_done() const { return end_ != End::kNone; }
  /// False when neither a step nor an interrupted evaluation is left.
  bool has_work() const { return !is_done() || evaluation_pending_; }
  /// Evaluates the initial weights (reference of the health lines, docs/health.md), or repeats an
  /// interrupted evaluation.
  void start();

  /// Runs a phase of a step on every rank (engine/ranks/phase.h) and adds its time to time/step_s.
  /// After an interrupt or a failure that keeps the state, the data stream and the carry buffer are
  /// as they were before the phase, and a checkpoint is saved before the exception is rethrown.
  void phase(const char* name, StepMetrics& metrics, const std::function<void()>& body);
  /// Runs a phase without adding its time to the step.
  void untimed_phase(const char* name, const std::function<void()>& body);

  /// True for a window that rolls out. Adds rollout/is_rollout in stage 2.
  bool rolls_out(const WindowPlan& plan, MetricsBag& metrics) const;
  /// Makes prompts and ground truths of a window's samples; starts loading their images.
  std::vector<ScoredRollout> prepare(const WindowPlan& plan) const;
  /// Starts loading the images of the next window, so that they are ready after the update of the
  /// current one.
  void prefetch_next();
  /// Generates the rollouts with the current weights; passes these to the engine and makes room for
  /// it first. Every rank calls it.
  void roll_out(std::vector<ScoredRollout>& rollouts, const WindowPlan& plan, MetricsBag& metrics);
  void parse(ScoredRollout& rollout, MetricsBag& metrics) const {
    scorer().parse(rollout, metrics);
  }
  void match(ScoredRollout& rollout, MetricsBag& metrics) const {
    scorer().match(rollout, metrics);
  }
  /// Passes the scored rollouts of a window to the observers of the run.
  void show(const std::vector<ScoredRollout>& scored) const;
  /// Builds the training segment of a scored rollout.
  /// @throws SegmentTooLong, unless `data.on_bad_sample: skip` drops long segments later
  SegmentPtr make_target(const ScoredRollout& rollout, MetricsBag& metrics) const {
    return rematch::make_target(rollout, rollouts_->target, metrics);
  }

  /// Makes a window current.
  void open(OpenWindow window);
  /// After an update: counts the step; then logs, evaluates, saves and ends the run as due.
  void finish_step(StepMetrics& metrics);

  /// Restores everything but the weights, which are already loaded. The run keeps its configured
  /// length and cadence. Every rank calls it, inside a phase.
  /// @throws UserError (data) when the checkpoint does not fit the parts
  void restore(LoadedCheckpoint loaded);

  const RunProgress& progress() const { return record_.state.progress; }
  int64_t total_steps() const { return record_.cadence.total_steps(); }
  int64_t epoch() const { return source_.stream->cursor().epoch; }

 private:
  const RolloutScorer& scorer() const { return rollouts_->scorer; }
  RunState run_state() const;
  BestOf best_of() const;
  /// `early_stopping_patience`; 0 = none
  int64_t patience() const;
  bool stopped_early() const { return end_ == End::kHarm || end_ == End::kPatience; }
  void warn_about_changed_evaluation();
  End end_by_steps() const;
  bool evaluate_and_save(bool evaluation_due, bool save_due);
  bool evaluate();
  void save();
  std::vector<Problem> try_save();

  Group& group_;
  Source source_;
  std::optional<RolloutParts> rollouts_;
  Update update_;
  Record record_;
  /// of the last evaluation, part of a checkpoint; nullopt before there is one
  std::optional<ScoreCalibration> calibration_;
  End end_ = End::kNone;
  /// the evaluation after the last step is not finished; part of a checkpoint
  bool evaluation_pending_ = false;
  int64_t num_windows_ = 0;
};

}  // namespace rematch
