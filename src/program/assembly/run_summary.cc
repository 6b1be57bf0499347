#include "program/assembly/run_summary.h"

#include <fmt/core.h>

#include "base/terminal_text.h"

#include <array>
#include <string>

namespace rematch {
namespace {

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

}  // namespace

RunSummary::RunSummary(const RunDirectory& directory, const Trainer& trainer, Terminal& terminal)
    : terminal_(terminal), first_step_(trainer.progress().global_step) {
  if (!directory.checkpoint()) return;
  const char* end = trainer.is_done() ? ": nothing is left to do (see training.max_steps)" : "";
  terminal.say(
      fmt::format("resuming after step {} of {}{}", first_step_, trainer.total_steps(), end));
}

void RunSummary::print(const Training& training, const Trainer& trainer,
                       Observers& observers) const {
  const Job& job = training.job;
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start_;
  const RunProgress& progress = trainer.progress();
  observers.log().require_in_place();
  if (const Evaluation* evaluation = trainer.evaluation_or_null())
    observers.log().note_final_health(progress, evaluation->num_samples());
  const auto say = [this](const std::string& text) {
    if (!text.empty()) terminal_.say(wrapped(text, 2));
  };
  say(packing_text(trainer.packer(), job.group));
  if (training.packing) say(training.packing->summary_text(trainer.epoch()));
  if (job.data.num_long_dropped > 0)
    say(fmt::format("{} samples longer than global_max_length were not trained on",
                    job.data.num_long_dropped));
  observers.close(seconds.count());
  observers.log().note_done(progress,
                            {.num_steps = progress.global_step - first_step_,
                             .seconds = seconds.count(),
                             .run_dir = job.settings().output.run_dir,
                             .has_validation = job.settings().data.val_jsonl.has_value()});
}

}  // namespace rematch
