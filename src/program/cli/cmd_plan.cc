// `rematch plan CONFIG|MODEL_DIR`
#include "program/cli/cmd_plan.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/json.h"
#include "base/terminal_text.h"
#include "model/checkpoint/model_dir.h"
#include "program/assembly/plan_request.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "program/config/config.h"
#include "tools/plan/advice.h"
#include "tools/plan/report.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr int kAssumedSamplesPerStep = 16;  // for a model directory

std::optional<std::string> model_dir_of(const std::string& path) {
  if (fs::path(path).filename() == "config.json") return fs::path(path).parent_path().string();
  if (names_configuration(path)) return std::nullopt;
  require_model_dir(path);
  return path;
}

// A run of stage 2 as most are: for a model without a configuration.
Settings usual_settings(const std::string& model_dir) {
  Settings settings;
  settings.variant = TrainerVariant::kRolloutMatching;
  settings.model.directory = model_dir;
  settings.backend = "native";
  settings.batches.gradient_accumulation_steps = kAssumedSamplesPerStep;
  settings.data.train_files = {{.path = "train.jsonl"}};  // is not read
  return settings;
}

}  // namespace

PlanRequest plan_request_of(const Settings& settings, const PlanArguments& arguments) {
  const bool on_gpu = arguments.gpu_memory_gib.has_value();
  PlanRequest request = plan_request(
      settings,
      {.on_gpu = on_gpu,
       .memory_bytes = on_gpu ? static_cast<int64_t>(*arguments.gpu_memory_gib * kBytesPerGib)
                              : host_memory().total,
       .num_ranks = arguments.num_ranks,
       .zero_stage = settings.optim.zero_stage});
  if (arguments.image_tokens) {
    request.visual_share = std::min(1.0, static_cast<double>(*arguments.image_tokens) /
                                             static_cast<double>(request.sample_tokens));
  }
  return request;
}

int run_plan(const PlanArguments& arguments, std::ostream& out) {
  const std::optional<std::string> model_dir = model_dir_of(arguments.path);
  const ConfigResult config =
      load_config(model_dir ? "" : arguments.path, arguments.overrides, arguments.num_ranks,
                  model_dir ? usual_settings(*model_dir) : Settings{});
  const Settings& settings = config.settings;
  const PlanRequest request = plan_request_of(settings, arguments);
  const MemoryPlan plan = make_plan(request);
  if (arguments.json) {
    out << python_json(plan_json(request, plan), 2) << "\n";
  } else {
    out << printable_lines(plan_text(request, plan, settings.model.directory));
    for (const Warning& warning : config.warnings)
      out << printable_lines(wrapped("warning: " + warning.line(), 2)) << "\n";
  }
  return 0;
}

std::string check_memory(const PlanRequest& request, const MemoryPlan& plan,
                         const PlanArguments& arguments) {
  const int64_t least = plan.least_bytes, memory = request.device.memory_bytes;
  if (memory == 0) return "";
  const bool asked_for = arguments.gpu_memory_gib.has_value();
  if (least > memory && asked_for) {
    const Strings advice = make_advice(request, plan);
    throw config_error(
        {.error = "this run cannot fit the device",
         .where = fmt::format("--gpu-memory {}", *arguments.gpu_memory_gib),
         .what = fmt::format(
             "weights, optimizer and gradients alone take {} of {}; {} parameters, {} trained",
             gib_text(least), gib_text(memory), plan.parameters.total, plan.num_trainable),
         .fix = fmt::format("{}; `rematch plan` shows every part", advice.front())});
  }
  if (plan.fits) return "";
  // Without --gpu-memory the run may be meant for another machine.
  return fmt::format(
      "memory: {} on {} are expected at most, in the phase {}, and {} can be used; `rematch plan "
      "{}` shows what to change",
      gib_text(plan.peak_bytes), asked_for ? "the GPU" : "a CPU like this machine's",
      plan.peak_phase, gib_text(plan.usable_bytes), shell_word(arguments.path));
}

void add_plan_device(CLI::App& command, PlanArguments& arguments, const char* gpu_memory_help) {
  command.add_option("--gpu-memory", arguments.gpu_memory_gib, gpu_memory_help)
      ->check(finite_range(1e-3, 1e6, "GiB"));
  command.add_option("--ranks", arguments.num_ranks, "data-parallel ranks, one device each")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
}

Command add_plan_command(CLI::App& app) {
  const auto [command, plan, arguments] =
      make_command(app, "plan",
                   "estimate how much memory a run takes, phase by phase, and "
                   "whether it fits; needs no weights",
                   +[](const PlanArguments& given) { return run_plan(given, std::cout); },
                   {"my.yaml --gpu-memory 80",
                    "models/base --gpu-memory 80 --ranks 4 --set training.zero_stage=2"});
  plan.add_option("CONFIG|MODEL_DIR", arguments.path,
                  "YAML configuration, or a model directory (its config.json is enough)")
      ->required();
  add_overrides(plan, arguments.overrides);
  add_plan_device(plan, arguments,
                  "plan for a GPU with this many GiB; default: the CPU of this machine");
  plan.add_option(
          "--image-tokens", arguments.image_tokens,
          "how many of the longest sample's tokens (global_max_length, or 4096) are image pads; "
          "default: half")
      ->check(CLI::NonNegativeNumber);
  plan.add_flag("--json", arguments.json, "print one JSON object instead of tables");
  return command;
}

}  // namespace rematch
