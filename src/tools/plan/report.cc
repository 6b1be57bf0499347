#include "tools/plan/report.h"

#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/host_memory.h"
#include "base/terminal_text.h"
#include "tools/plan/advice.h"

namespace rematch {
namespace {

std::string cell(int64_t bytes) {
  if (bytes == 0) return "-";
  const double gib = static_cast<double>(bytes) / kBytesPerGib;
  return fmt::format("{:.{}f}", gib, gib < 1 ? 3 : 1);
}

// Names of all table rows, in the order of their first phase.
Strings collect_names(const MemoryPlan& plan) {
  Strings names;
  for (const PlanPhase& phase : plan.phases) {
    for (const NamedBytes* list : {&phase.bytes, &phase.host_bytes}) {
      for (const auto& [name, bytes] : *list) {
        if (!contains(names, name)) names.push_back(name);
      }
    }
  }
  return names;
}

int64_t find_bytes(const NamedBytes& list, const std::string& name) {
  const auto found = std::ranges::find(list, name, &NamedBytes::value_type::first);
  return found == list.end() ? 0 : found->second;
}

std::string table(const MemoryPlan& plan) {
  std::string text;
  const auto add_row = [&](const std::string& name, const auto& cell_of) {
    text += fmt::format("{:17}", name);
    for (const PlanPhase& phase : plan.phases) text += fmt::format("{:>10}", cell_of(phase));
    text += "\n";
  };
  add_row("GiB", [](const PlanPhase& phase) { return phase.name; });
  for (const std::string& name : collect_names(plan))
    add_row(name, [&](const PlanPhase& phase) { return cell(find_bytes(phase.bytes, name)); });
  add_row("together", [](const PlanPhase& phase) { return cell(phase.total()); });
  return text;
}

std::string moved_text(const MemoryPlan& plan) {
  std::string text;
  for (const PlanPhase& phase : plan.phases) {
    for (const auto& [name, bytes] : phase.host_bytes) {
      text += fmt::format("{}: {} ({}) are on the host\n", phase.name, name, gib_text(bytes));
    }
  }
  return text;
}

/// The room that a plan leaves.
std::string room_text(const PlanRequest& request) {
  const int64_t row = largest_row(request), batch = largest_batch(request);
  if (request.pack.enabled)
    return fmt::format(
        "A packed row may hold up to {} tokens (global_max_length); rollouts may come in batches "
        "(per_device_train_batch_size) of up to {}.",
        row, batch);
  return fmt::format(
      "With {} tokens a sample the batch (per_device_train_batch_size) may be up to {}; with "
      "batches of {} a sample may have up to {} tokens.",
      request.sample_tokens, batch, request.batches.per_device_train_batch_size, row);
}

std::string device_text(const PlanRequest& request, const MemoryPlan& plan) {
  const PlanDevice& device = request.device;
  const std::string what =
      device.on_gpu
          ? (device.num_ranks > 1 ? fmt::format("each of {} GPUs", device.num_ranks) : "a GPU")
          : "this machine's CPU";
  const std::string memory =
      device.memory_bytes == 0
          ? "of unknown memory"
          : fmt::format("with {}, of which {} can be used", gib_text(device.memory_bytes),
                        gib_text(plan.usable_bytes));
  const std::string zero =
      device.num_ranks > 1 ? fmt::format(", zero stage {}", device.zero_stage) : "";
  return fmt::format("{} {}{}; {}", what, memory, zero,
                     request.value_bytes == 2 ? "bfloat16" : "float32");
}

std::string run_text(const PlanRequest& request) {
  const std::string tuner = request.tuner.train_type == TrainType::kFull
                                ? "full fine-tuning"
                                : fmt::format("LoRA of rank {}", request.tuner.lora.rank);
  const int64_t row = request.row_tokens();
  return fmt::format(
      "{}, gradient checkpointing {}, {}: {}; rows of {} tokens, {} of them image pads; {} samples "
      "a step",
      tuner, name_of(request.gradient_checkpointing),
      request.trains_on_rollouts ? "rollouts" : "rollouts of evaluations",
      request.backend.empty() ? "none" : request.backend, row, request.visual_tokens(row),
      request.window_samples());
}

}  // namespace

Json plan_json(const PlanRequest& request, const MemoryPlan& plan) {
  const auto to_object = [](const NamedBytes& list) {
    Json object = Json::object();
    for (const auto& [name, bytes] : list) object[name] = bytes;
    return object;
  };
  Json root;
  root["parameters"] = {{"total", plan.parameters.total},
                        {"text", plan.parameters.text},
                        {"vision", plan.parameters.vision},
                        {"trainable", plan.num_trainable}};
  root["phases"] = Json::array();
  for (const PlanPhase& phase : plan.phases) {
    Json entry{{"name", phase.name}, {"bytes", to_object(phase.bytes)}};
    if (!phase.host_bytes.empty()) entry["host_bytes"] = to_object(phase.host_bytes);
    root["phases"].push_back(std::move(entry));
  }
  root["peak_bytes"] = plan.peak_bytes;
  root["peak_phase"] = plan.peak_phase;
  root["fits"] = plan.fits;
  root["advice"] = make_advice(request, plan);
  root["device"] = {{"kind", request.device.on_gpu ? "gpu" : "cpu"},
                    {"memory_bytes", request.device.memory_bytes},
                    {"usable_bytes", plan.usable_bytes},
                    {"ranks", request.device.num_ranks},
                    {"zero_stage", request.device.zero_stage}};
  root["row"] = {{"tokens", request.row_tokens()},
                 {"image_tokens", request.visual_tokens(request.row_tokens())},
                 {"samples_per_step", request.window_samples()}};
  if (plan.usable_bytes > 0) {
    root["largest_row_tokens"] = largest_row(request);
    root["largest_batch"] = largest_batch(request);
  }
  return root;
}

std::string plan_text(const PlanRequest& request, const MemoryPlan& plan,
                      const std::string& title) {
  const ParameterCounts& counts = plan.parameters;
  std::string text = title + "\n";
  text += wrapped(
      fmt::format("  {} parameters: text {}, vision {}; trained: {}\n  {}\n  {}\n\n",
                  count_text(counts.total), count_text(counts.text), count_text(counts.vision),
                  count_text(plan.num_trainable), device_text(request, plan), run_text(request)),
      2);
  text += table(plan) + moved_text(plan) + "\n";
  const std::string peak =
      fmt::format("peak {} (phase {})", gib_text(plan.peak_bytes), plan.peak_phase);
  if (plan.usable_bytes == 0) {
    text += peak + "\n";
  } else {
    text += plan.fits ? wrapped(fmt::format("{}: fits. {}\n", peak, room_text(request)), 2)
                      : fmt::format("{}: DOES NOT FIT in {}\n", peak, gib_text(plan.usable_bytes));
    for (const std::string& line : make_advice(request, plan))
      text += wrapped("- " + line + "\n", 2);
  }
  return text + "docs/plan.md says what a line or phase is, such as masters or m-step\n";
}

}  // namespace rematch
