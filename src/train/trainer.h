#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "data/windows.h"
#include "estep/make_target.h"
#include "estep/roll_out.h"
#include "estep/truth_segments.h"
#include "evaluate/evaluate.h"
#include "model/feature_cache.h"
#include "mstep/mstep.h"
#include "pack/packer.h"
#include "ranks/group.h"
#include "resume/run_state.h"
#include "train/bad_samples.h"
#include "train/cadence.h"
#include "train/checkpoints.h"
#include "train/rollout_buffer.h"
#include "train/run_log.h"
#include "train/step_metrics.h"

namespace rematch {

/// The parts of stage 2 that roll out. Scorer and engine must outlive the trainer.
struct RolloutParts {
  const RolloutScorer& scorer;
  RolloutSource source;
  TargetOptions target;
  double share = 1;  ///< `rollout_share`: share of the windows that roll out
  /// observer of the scored rollouts of every window; may be empty
  std::function<void(int64_t step, const std::vector<ScoredRollout>&)> on_rollouts;
};

/// The parts of a run; assembly/make_trainer.cc makes them.
struct TrainerParts {
  Group& group;
  RunLog& log;
  std::unique_ptr<WindowStream> stream;    ///< which samples come next
  BadSamples bad_samples;                  ///< leaves out unusable samples
  std::optional<RolloutParts> rollouts;    ///< nullopt in stage 1
  std::unique_ptr<TruthSegments> truth;    ///< segments of windows that do not roll out
  Packer packer;                           ///< segments → rows; the carry buffer
  RolloutBuffer buffer;                    ///< the current window
  std::unique_ptr<FeatureCache> features;  ///< of a reused window; null without reuse
  std::unique_ptr<MStep> mstep;            ///< rows → one optimizer update
  Cadence cadence;                         ///< when to log, evaluate, save and stop
  std::unique_ptr<Evaluation> evaluation;  ///< null without validation data
  Checkpoints checkpoints;
  Fingerprint fingerprint;  ///< identity of the run, part of a checkpoint
  TrainerState state;
  bool save_on_best = false;    ///< save_strategy: best
  bool evaluate_first = false;  ///< eval_on_start
  bool stop_on_harm = false;    ///< end the run when an evaluation is worse than its start
};

/// A run: its parts, its phases, saving and restoring. train() in train/loop.cc calls it in the
/// order of a step.
class Trainer : private TrainerParts {
 public:
  explicit Trainer(TrainerParts parts);

  // The parts that train() uses.
  using TrainerParts::bad_samples;
  using TrainerParts::buffer;
  using TrainerParts::mstep;
  using TrainerParts::packer;
  using TrainerParts::stream;
  using TrainerParts::truth;

  bool is_done() const { return is_done_; }
  /// False when neither a step nor an interrupted evaluation is left.
  bool has_work() const { return !is_done_ || evaluation_pending_; }
  /// As Checkpoints::before_first_save.
  void before_first_save(std::function<void()> clear) {
    checkpoints.before_first_save(std::move(clear));
  }
  /// Evaluates the initial weights (reference of the health lines, docs/health.md), or repeats an
  /// interrupted evaluation.
  void start();

  /// Runs a phase of a step on every rank (ranks/phase.h) and adds its time to time/step_s. After a
  /// failure the data stream and the carry buffer are as they were before the phase. If the failure
  /// keeps the state, or is an interrupt, a checkpoint is saved before it is rethrown.
  /// @return the result of `body`
  template <typename Body>
  auto phase(const char* name, StepMetrics& metrics, Body&& body) {
    if constexpr (std::is_void_v<decltype(body())>) {
      untimed_phase(name, [&] {
        const Span time(metrics, "time/step_s");
        body();
      });
    } else {
      decltype(body()) result{};
      phase(name, metrics, [&] { result = body(); });
      return result;
    }
  }
  /// Runs a phase without adding its time to the step.
  void untimed_phase(const char* name, const std::function<void()>& body);

  /// True for a window that rolls out. Adds rollout/is_rollout in stage 2.
  bool rolls_out(const WindowPlan& plan, MetricsBag& metrics) const;
  /// Makes prompts and ground truths of a window's samples; starts loading their images.
  std::vector<ScoredRollout> prepare(const WindowPlan& plan) const;
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
  std::shared_ptr<const Segment> make_target(const ScoredRollout& rollout,
                                             MetricsBag& metrics) const {
    return rematch::make_target(rollout, rollouts->target, metrics);
  }

  /// Makes a window current.
  void open(OpenWindow window);
  /// After an update: counts the step; then logs, evaluates, saves and stops as due.
  void finish_step(StepMetrics& metrics);

  /// Writes a checkpoint of the current state: weights, optimizer, position in the data, open
  /// window, carry buffer, trainer state. Every rank calls it. @throws UserError (environment)
  void save();
  /// Restores everything but the weights, which are already loaded. The run keeps its configured
  /// length and cadence. Every rank calls it, inside a phase.
  /// @throws UserError (data) when the checkpoint does not fit the parts
  void restore(LoadedCheckpoint loaded);

  const TrainerState& progress() const { return state; }
  int64_t total_steps() const { return cadence.total_steps(); }
  int64_t epoch() const { return stream->cursor().epoch; }
  const Evaluation* evaluation_or_null() const { return evaluation.get(); }

 private:
  const RolloutScorer& scorer() const { return rollouts->scorer; }
  RunState run_state() const;
  BestOf best_of() const;
  void warn_about_changed_evaluation();
  void evaluate_and_save(bool evaluation_due, bool save_due);
  bool evaluate();
  void save_after_failure();

  bool is_done_ = false;
  bool is_saved_ = false;  ///< in the current phase
  /// the evaluation after state.global_step is not finished; part of a checkpoint
  bool evaluation_pending_ = false;
  bool is_harmful_ = false;  ///< the last evaluation was worse than the start and ends the run
  int64_t num_windows_ = 0;
};

}  // namespace rematch
