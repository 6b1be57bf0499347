#include "program/assembly/observers.h"

#include <ATen/DeviceAccelerator.h>
#include <unistd.h>

#include <fstream>

#include "base/file.h"
#include "base/observe/sinks.h"

namespace rematch {

namespace {

/// Resident memory of this process on the CPU, of torch's allocator on another device.
int64_t memory_in_use(const at::Device& device) {
  if (!device.is_cpu()) {
    const auto stats = at::accelerator::getDeviceStats(device.index());
    return stats.allocated_bytes[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)]
        .current;
  }
  std::ifstream file("/proc/self/statm");  // pages: size, resident, …
  int64_t size = 0, resident = 0;
  return file >> size >> resident ? resident * ::sysconf(_SC_PAGESIZE) : 0;
}

RunLog::Live live_sources(const Job& job) {
  const Settings& settings = job.settings();
  RunLog::Live live{.memory_bytes = [device = job.device] { return memory_in_use(device); },
                    .num_ranks = job.group.size(),
                    .memory_name = job.device.is_cpu() ? "RAM" : "GPU",
                    .gate = settings.match.maskiou_gate};
  if (settings.is_stage_2())
    live.format = {.model_dir = settings.model.directory,
                   .train_jsonl = settings.data.train_files.front().path,
                   .max_new_tokens = settings.generation.max_new_tokens,
                   .kind = settings.target.policy == "append" ? advice::Training::Kind::kAppend
                                                              : advice::Training::Kind::kRewrite};
  return live;
}

}  // namespace

Observers::Observers(const Job& job) : job_(job), log_(job.terminal, live_sources(job)) {}

void Observers::open(std::optional<int64_t> resumed_step) {
  if (!job_.is_first()) return;
  const Settings& settings = job_.settings();
  const OutputSettings& output = settings.output;
  const std::string path = output.run_dir + "/logging.jsonl";
  if (resumed_step) truncate_jsonl_after(path, *resumed_step);
  log_.add(make_jsonl_sink(path));

  TensorboardSink* tensorboard = nullptr;
  if (output.reports_to("tensorboard")) {
    std::unique_ptr<TensorboardSink> sink = make_tensorboard_sink(output.logging_dir, resumed_step);
    tensorboard = sink.get();
    log_.add(std::move(sink));
  }
  if (output.reports_to("wandb")) {
    if (const std::optional<std::string> text = missing_wandb())
      job_.terminal.warn(*text);
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
                             .user_prompt = job_.files.prompts->user_prompt(),
                             .tensorboard = tensorboard},
        *job_.files.format, job_.terminal);
  }
}

void Observers::show(int64_t step, const std::vector<ScoredRollout>& scored) {
  if (monitor_) monitor_->dump(step, scored);
}

void Observers::close(double seconds) {
  if (monitor_) job_.terminal.say(monitor_->summary_text(seconds));
  if (!wandb_) return;
  if (const std::optional<std::string> text = wandb_->problem()) job_.terminal.warn(*text);
}

}  // namespace rematch
