#include "assembly/observers.h"

#include <filesystem>

#include "assembly/start_lines.h"
#include "observe/sinks.h"

namespace rematch {

namespace {

RunLog::Live live_sources(const Session& session, const Group& group) {
  const Settings& settings = session.settings;
  RunLog::Live live{.memory_bytes = [&session] { return memory_in_use(session.device); },
                    .num_ranks = group.size(),
                    .memory_name = session.device.is_cpu() ? "RAM" : "GPU"};
  if (settings.is_stage_2())
    live.format = {.model_dir = settings.model.directory,
                   .train_jsonl = settings.data.train_files.front().path,
                   .max_new_tokens = settings.generation.max_new_tokens};
  return live;
}

}  // namespace

Observers::Observers(const ConfigResult& config, const Session& session, Group& group)
    : config_(config),
      session_(session),
      is_first_(group.rank() == 0),
      log_(session.terminal, live_sources(session, group)) {}

void Observers::open(std::optional<int64_t> resumed_step) {
  if (!is_first_) return;
  const Settings& settings = config_.settings;
  const OutputSettings& output = settings.output;
  const std::string path = output.run_dir + "/logging.jsonl";
  if (resumed_step && std::filesystem::exists(path)) truncate_jsonl_after(path, *resumed_step);
  std::unique_ptr<JsonlSink> log = make_jsonl_sink(path);
  file_ = log.get();
  log_.add(std::move(log));

  TensorboardSink* tensorboard = nullptr;
  if (output.reports_to("tensorboard")) {
    std::unique_ptr<TensorboardSink> sink = make_tensorboard_sink(output.logging_dir, resumed_step);
    tensorboard = sink.get();
    log_.add(std::move(sink));
  }
  if (output.reports_to("wandb")) {
    if (const std::optional<std::string> text = missing_wandb())
      session_.terminal.warn(*text);
    else
      wandb_ = std::make_unique<const WandbFollower>(output.run_dir,
                                                     output.run_name.value_or("rematch"));
  }
  if (settings.monitor.enabled && settings.is_stage_2()) {
    monitor_ = std::make_unique<MonitorDump>(
        MonitorDump::Options{.settings = settings.monitor,
                             .match = settings.match,
                             .target = settings.target,
                             .run_dir = output.run_dir,
                             .logging_steps = settings.cadence.logging_steps,
                             .user_prompt = session_.prompts->user_prompt(),
                             .tensorboard = tensorboard},
        *session_.format, session_.terminal);
  }
}

void Observers::show(int64_t step, const std::vector<ScoredRollout>& scored) {
  if (monitor_) monitor_->dump(step, scored);
}

void Observers::close(double seconds) {
  if (monitor_) session_.terminal.say(monitor_->summary_text(seconds));
  if (!wandb_) return;
  if (const std::optional<std::string> text = wandb_->problem()) session_.terminal.warn(*text);
}

}  // namespace rematch
