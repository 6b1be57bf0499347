#include "program/assembly/run.h"

#include <fmt/core.h>

#include <array>
#include <chrono>
#include <optional>
#include <utility>

#include "base/observe/event.h"
#include "base/terminal_text.h"
#include "engine/ranks/phase.h"
#include "learn/data/ordering.h"
#include "learn/resume/run_lock.h"
#include "learn/train/loop.h"
#include "program/assembly/long_samples.h"
#include "program/assembly/make_trainer.h"
#include "program/assembly/own_order.h"
#include "program/assembly/parts.h"
#include "program/assembly/run_directory.h"
#include "program/assembly/run_identity.h"
#include "program/assembly/run_length.h"
#include "program/assembly/start_lines.h"

namespace rematch {
namespace {

/// Starts the engine of a training; nullopt without rollouts.
std::optional<Engine> start(const Training& training) {
  const Job& job = training.job;
  job.group.barrier();  // no rank starts a shared engine after another one failed
  if (!job.rolls_out()) return std::nullopt;
  return start_engine(job, training.model, job.settings().generation);
}

/// Refuses a cache that is too small for a prompt and its answer: the first evaluation would do so
/// after the steps before it.
void check_answer_cache(const Job& job) {
  if (!job.rolls_out() || job.settings().generation.native.kv_cache_gib <= 0) return;
  for (const auto* data : {&job.data.train, &job.data.val}) {
    if (!*data) continue;
    const std::string text = answer_budget_warning(**data, job.settings(), job.files, job.device);
    if (!text.empty()) job.terminal.warn(text);
  }
}

/// Finds the order of the answers, packs the stream and loads the model. A stream that needs no
/// answers is packed first, which finds samples that are too long for a row at once.
Training prepare(Job& job, const RunDirectory& directory) {
  check_answer_cache(job);
  const std::string weights = directory.checkpoint().value_or("");
  if (!weights.empty()) job.order = stored_order(job.settings().data, weights);
  const bool learns = job.settings().data.object_ordering == ObjectOrdering::kOwn && !job.order;
  Training training{.job = job,
                    .packing = learns ? nullptr : make_stream_packing(job),
                    .model = load_model(job, weights)};
  if (!learns) return training;
  job.order = std::make_shared<const OrderScore>(learn_order(job, training.model));
  training.packing = make_stream_packing(job);
  return training;
}

/// The parts of a training without its trainer, in order of construction.
struct Run {
  explicit Run(Job& job)
      : directory(job),
        training(prepare(job, directory)),
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

/// The packing of all ranks together; empty without packing.
std::string packing_text(const Packer& packer, Group& group) {
  const PackingSummary& own = packer.summary();
  std::array<int64_t, 6> counts{own.num_rows,        own.num_segments,
                                own.num_tokens,      own.padded_tokens,
                                own.num_underfilled, std::ssize(packer.waiting())};
  group.all_reduce(counts);
  const PackingSummary total{.num_rows = counts[0],
                             .num_segments = counts[1],
                             .num_tokens = counts[2],
                             .padded_tokens = counts[3],
                             .num_underfilled = counts[4]};
  return packer.summary_text(total, static_cast<size_t>(counts[5]));
}

/// Says where a run resumes.
void say_resumed(const Run& run, const Trainer& trainer, Terminal& terminal) {
  if (!run.directory.checkpoint()) return;
  terminal.say(fmt::format(
      "resuming after step {} of {}{}", trainer.progress().global_step, trainer.total_steps(),
      trainer.is_done() ? ": nothing is left to do (see training.max_steps)" : ""));
}

/// Prints what a run did, and the next commands. Every rank calls it, inside a phase.
void print_summary(Run& run, const Trainer& trainer, int64_t first_step, double seconds) {
  const Job& job = run.training.job;
  RunLog& log = run.observers.log();
  const RunProgress& progress = trainer.progress();
  log.require_in_place();
  const auto say = [&job](const std::string& text) {
    if (!text.empty()) job.terminal.say(wrapped(text, 2));
  };
  say(packing_text(trainer.packer(), job.group));
  if (run.training.packing) say(run.training.packing->summary_text(trainer.epoch()));
  if (job.data.num_long_dropped > 0)
    say(fmt::format("{} samples longer than global_max_length were not trained on",
                    job.data.num_long_dropped));
  run.observers.close(seconds);
  log.note_done(progress, {.num_steps = progress.global_step - first_step,
                           .seconds = seconds,
                           .run_dir = job.settings().output.run_dir,
                           .has_validation = job.settings().data.val_jsonl.has_value()});
}

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
  Job job = open_job({.config = std::move(config)}, Use::kTrain, place);
  std::optional<Run> run;
  std::optional<Trainer> trainer;
  run_phase(place.group, "start", [&] {
    run.emplace(job);
    trainer.emplace(run->begin());
  });
  say_resumed(*run, *trainer, place.terminal);
  const int64_t first_step = trainer->progress().global_step;
  const auto start = std::chrono::steady_clock::now();
  train(*trainer);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  run_phase(place.group, "end", [&] { print_summary(*run, *trainer, first_step, time.count()); });
}

}  // namespace rematch
