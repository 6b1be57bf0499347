#include "program/assembly/run.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/observe/event.h"
#include "engine/ranks/phase.h"
#include "learn/resume/run_lock.h"
#include "learn/train/loop.h"
#include "program/assembly/make_trainer.h"
#include "program/assembly/run_directory.h"
#include "program/assembly/run_identity.h"
#include "program/assembly/run_length.h"
#include "program/assembly/run_summary.h"
#include "program/assembly/start_lines.h"
#include "program/assembly/truth.h"

namespace rematch {
namespace {

/// Starts the engine of a training; nullopt without rollouts.
std::optional<Engine> start(const Training& training) {
  const Job& job = training.job;
  job.group.barrier();  // no rank starts a shared engine after another one failed
  if (!job.rolls_out()) return std::nullopt;
  return start_engine(job, training.model, job.settings().generation);
}

/// The parts of a training without its trainer, in order of construction.
struct Run {
  explicit Run(const Job& job)
      : directory(job),
        training{.job = job,
                 // Finds samples that are too long for a row before the model is loaded.
                 .packing = make_stream_packing(job),
                 .model = load_model(job, directory.checkpoint().value_or(""))},
        fingerprint(agreed_fingerprint(training)),
        observers(job),
        engine(start(training)) {}

  /// Makes the trainer, restores the checkpoint, if there is one, and opens the logs. Not part of
  /// the constructor: after a failure, a shared engine must stay alive until all ranks know of it.
  Trainer begin() {
    const Job& job = training.job;
    const Settings& settings = job.settings();
    Trainer trainer = make_trainer(training, engine, observers, fingerprint);
    std::optional<LoadedCheckpoint> resumed =
        directory.read_checkpoint(*training.model, fingerprint);
    if (resumed) trainer.restore(*std::move(resumed));
    job.group.barrier();  // change the directory only after all ranks read the checkpoint
    if (directory.continues_its_run() && trainer.has_work())
      directory.continue_from(trainer.progress());
    observers.open(kept_log_step(trainer));
    for (const std::string& line :
         start_lines(job, trainer.progress().global_step, trainer.total_steps()))
      job.terminal.say(line);
    if (job.is_first()) send_event("run", settings.output.run_dir);
    const std::string warning = warmup_warning(settings.schedule, trainer.total_steps());
    if (!warning.empty()) job.terminal.warn(warning);
    return trainer;
  }

  /// The last step of the log lines that this run continues. Nullopt for a new run, and when it
  /// adds none; then the lines of later checkpoints stay.
  std::optional<int64_t> kept_log_step(const Trainer& trainer) const {
    // `latest` without a checkpoint restarts the same run: remove all its log lines, including the
    // evaluation of step 0.
    const bool resumes = training.job.settings().checkpoints.resume_from_checkpoint.has_value();
    if (resumes && !directory.checkpoint()) return -1;
    if (!directory.continues_its_run()) return std::nullopt;
    return trainer.has_work() ? std::optional(trainer.progress().global_step) : std::nullopt;
  }

  RunDirectory directory;
  Training training;
  Fingerprint fingerprint;
  Observers observers;
  std::optional<Engine> engine;
};

/// Refuses a directory that the run may not use, before data are read.
void check_directory(const ConfigResult& config, Group& group) {
  run_phase(group, "start", [&] {
    if (group.rank() != 0) return;
    RunLock::require_free(config.settings.output.run_dir);
    refuse_to_replace_inputs(config);
  });
}

}  // namespace

void run_training(ConfigResult config, const Place& place) {
  check_directory(config, place.group);
  const Job job = open_job({.config = std::move(config)}, Use::kTrain, place);
  std::optional<Run> run;
  std::optional<Trainer> trainer;
  run_phase(place.group, "start", [&] {
    run.emplace(job);
    trainer.emplace(run->begin());
  });
  RunSummary summary(run->directory, *trainer, place.terminal);
  train(*trainer);
  run_phase(place.group, "end", [&] { summary.print(run->training, *trainer, run->observers); });
}

}  // namespace rematch
