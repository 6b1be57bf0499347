#include "program/assembly/start_lines.h"

#include <ATen/DeviceAccelerator.h>
#include <fmt/core.h>

#include "base/host_memory.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "program/assembly/plan_request.h"
#include "tools/plan/advice.h"
#include "tools/plan/plan.h"

namespace rematch {
namespace {

int64_t device_memory(const at::Device& device) {
  return device.is_cpu()
             ? host_memory().total
             : static_cast<int64_t>(at::accelerator::getMemoryInfo(device.index()).second);
}

/// The phase with the highest planned memory, and the usable memory.
std::string memory_text(const MemoryPlan& plan) {
  std::string text =
      fmt::format("at most {} planned ({})", gib_text(plan.peak_bytes), plan.peak_phase);
  if (plan.usable_bytes > 0)
    text += fmt::format("; {} can be used{}", gib_text(plan.usable_bytes),
                        plan.fits ? "" : ": DOES NOT FIT");
  return text;
}

std::string mixture_text(const Dataset& train) {
  Strings parts;
  for (const MixturePart& part : train.parts()) {
    parts.push_back(
        fmt::format("{} from {} ({} records)", part.num_drawn(), part.path, part.num_records()));
  }
  return fmt::format("{} training samples in an epoch: {}", train.epoch_size(), join(parts, ", "));
}

std::string samples_text(const Dataset& data, const char* purpose) {
  if (data.parts().size() > 1 || data.epoch_size() != data.size()) return mixture_text(data);
  return fmt::format("{} {} samples from {}", data.size(), purpose, data.path());
}

}  // namespace

Strings start_lines(const Job& job, int64_t first_step, int64_t last_step) {
  const Settings& settings = job.settings();
  const MemoryPlan plan =
      make_plan(plan_request(settings, {.on_gpu = !job.device.is_cpu(),
                                        .memory_bytes = device_memory(job.device),
                                        .num_ranks = job.group.size(),
                                        .zero_stage = settings.optim.zero_stage}));
  const int64_t samples = int64_t{settings.batches.per_device_train_batch_size} *
                          settings.batches.gradient_accumulation_steps * job.group.size();
  std::vector<std::pair<std::string, std::string>> rows{
      {"training",
       fmt::format("{}; {} of {} parameters{}",
                   settings.is_stage_2() ? "rollout-matching SFT" : "supervised fine-tuning",
                   count_text(plan.num_trainable), count_text(plan.parameters.total),
                   settings.tuner.train_type == TrainType::kLora
                       ? fmt::format(" (adapter of rank {})", settings.tuner.lora.rank)
                       : "")},
      {"data", samples_text(*job.data.train, "training")}};
  if (job.data.val) rows.emplace_back("", samples_text(*job.data.val, "validation"));
  if (job.order != nullptr) rows.emplace_back("order", order_text(*job.order));
  rows.emplace_back("steps",
                    fmt::format("{}{} of {}", counted(last_step, "optimizer step"),
                                first_step > 0 ? fmt::format(" ({} done)", first_step) : "",
                                counted(samples, "sample")));
  if (settings.is_stage_2())
    rows.emplace_back("rollouts",
                      fmt::format("{}, up to {} tokens, target policy {}", settings.backend,
                                  settings.generation.max_new_tokens, settings.target.policy));
  if (job.group.size() > 1 && settings.optim.exact_ranks)
    rows.emplace_back("ranks", "gradients summed row by row in window order (exact_ranks)");
  rows.emplace_back("memory", memory_text(plan));
  rows.emplace_back("where", "logs and checkpoints in " + settings.output.run_dir);
  Strings lines;
  for (const auto& [name, text] : rows) lines.push_back(fmt::format("{:9} {}", name, text));
  return lines;
}

}  // namespace rematch
