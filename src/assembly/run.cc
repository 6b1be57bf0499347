#include "assembly/run.h"

#include <memory>
#include <optional>

#include "assembly/make_trainer.h"
#include "assembly/run_directory.h"
#include "assembly/run_identity.h"
#include "assembly/run_length.h"
#include "assembly/run_summary.h"
#include "assembly/start_lines.h"
#include "assembly/vllm_setup.h"
#include "ranks/phase.h"
#include "train/loop.h"

namespace rematch {
namespace {

/// The parts of a training, in order of construction.
struct Run {
  Run(const ConfigResult& config, const std::string& device, Terminal& terminal, Group& group)
      : directory(config, terminal, group),
        engine_ranks(needs_rollouts(config.settings) ? split_engine_ranks(config.settings, group)
                                                     : nullptr),
        session(config.settings, device,
                training_needs(config.settings, engine_ranks.get(),
                               directory.checkpoint().value_or("")),
                group, terminal),
        fingerprint(agreed_fingerprint(config, session, group)),
        observers(config, session, group),
        trainer(make_trainer(session, observers, rollouts, group, fingerprint)) {}

  /// Restores the checkpoint, if there is one, and opens the logs. Not part of the constructor:
  /// after a failure, a shared engine must stay alive until all ranks know of it.
  void begin(const ConfigResult& config, Terminal& terminal, Group& group) {
    std::optional<LoadedCheckpoint> resumed = directory.read_checkpoint(session, fingerprint);
    if (resumed) trainer.restore(*std::move(resumed));
    group.barrier();  // change the directory only after all ranks read the checkpoint
    if (directory.continues_its_run() && trainer.has_work())
      directory.continue_from(trainer.progress());
    if (!directory.continues_its_run()) {
      trainer.before_first_save([this] {
        directory.move_earlier_run(observers.earlier_log_bytes());
        observers.drop_earlier_log();
      });
    }
    observers.open(kept_log_step(config.settings));
    for (const std::string& line :
         start_lines(session, group, trainer.progress().global_step, trainer.total_steps()))
      terminal.say(line);
    const std::string warning = warmup_warning(config.settings.schedule, trainer.total_steps());
    if (!warning.empty()) terminal.warn(warning);
  }

  /// The last step of the log lines that this run continues. Nullopt when the lines belong to an
  /// earlier run, or when this run adds none; then the lines of later checkpoints stay, like these.
  std::optional<int64_t> kept_log_step(const Settings& settings) const {
    if (directory.continues_its_run())
      return trainer.has_work() ? std::optional(trainer.progress().global_step) : std::nullopt;
    // `latest` without a checkpoint restarts the same run: remove all its log lines, including the
    // evaluation of step 0.
    const bool starts_again =
        settings.checkpoints.resume_from_checkpoint && !directory.checkpoint();
    return starts_again ? std::optional<int64_t>(-1) : std::nullopt;
  }

  RunDirectory directory;
  std::unique_ptr<Group> engine_ranks;
  Session session;
  Fingerprint fingerprint;
  Rollouts rollouts;
  Observers observers;
  Trainer trainer;
};

}  // namespace

void run_training(const ConfigResult& config, const std::string& device, Terminal& terminal,
                  Group& group) {
  std::optional<Run> run;
  run_phase(group, "start", [&] {
    meet_with_configuration(config, group);
    run.emplace(config, device, terminal, group);
    run->begin(config, terminal, group);
  });
  RunSummary summary(run->directory, run->trainer, terminal);
  train(run->trainer);
  run_phase(group, "end", [&] {
    summary.print(run->session, run->trainer, run->rollouts, run->observers, group);
  });
}

}  // namespace rematch
