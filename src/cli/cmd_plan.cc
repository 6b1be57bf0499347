#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "base/error.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/json.h"
#include "cli/commands.h"
#include "config/config.h"
#include "model/families/family.h"
#include "plan/advice.h"
#include "plan/report.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr double kGib = 1024.0 * 1024.0 * 1024.0;
constexpr int64_t kAssumedTokens = 4096;    // of a sample, without global_max_length
constexpr int kAssumedSamplesPerStep = 16;  // for a model directory

std::optional<std::string> model_dir_of(const std::string& path) {
  std::error_code ignored;
  if (fs::path(path).filename() == "config.json") return fs::path(path).parent_path().string();
  if (fs::is_directory(path, ignored)) return path;
  return std::nullopt;
}

void require_config_json(const std::string& directory) {
  std::error_code ignored;
  if (!fs::is_directory(directory, ignored) || fs::is_regular_file(join_path(directory, "config.json"), ignored)) return;
  throw UserError(ErrorKind::kConfig, {.error = "the model directory has no config.json",
                                       .where = directory,
                                       .what = "a plan needs no weights, but the model's sizes",
                                       .fix = "copy the config.json of the model there, or name another directory"});
}

// Bytes of a weight in the files, as config.json says it.
int64_t stored_value_bytes(const std::string& directory) {
  const Json config = read_json_file(join_path(directory, "config.json"));
  const auto dtype_of = [](const Json& object) -> std::string {
    for (const char* key : {"dtype", "torch_dtype"}) {
      if (object.is_object() && object.contains(key) && object[key].is_string()) return object[key].get<std::string>();
    }
    return "";
  };
  std::string dtype = dtype_of(config);
  if (dtype.empty() && config.contains("text_config")) dtype = dtype_of(config["text_config"]);
  return dtype == "bfloat16" || dtype == "float16" ? 2 : 4;
}

// A run of stage 2 as most are: for a model without a configuration.
Settings usual_settings(const std::string& model_dir) {
  Settings settings;
  settings.variant = TrainerVariant::kRolloutMatching;
  settings.model.directory = model_dir;
  settings.backend = "native";
  settings.batches.gradient_accumulation_steps = kAssumedSamplesPerStep;
  return settings;
}

PlanRequest request_of(const Settings& settings, const PlanArguments& arguments) {
  const bool on_gpu = arguments.gpu_memory_gib.has_value();
  const ModelDtype dtype = settings.model.dtype;
  const bool is_half = dtype == ModelDtype::kBfloat16 || (dtype == ModelDtype::kAuto && on_gpu);
  require_config_json(settings.model.directory);
  PlanRequest request{.model = describe_model(settings.model.directory),
                      .stored_value_bytes = stored_value_bytes(settings.model.directory),
                      .value_bytes = is_half ? 2 : 4,
                      .device = {.on_gpu = on_gpu,
                                 .memory_bytes = on_gpu ? static_cast<int64_t>(*arguments.gpu_memory_gib * kGib) : host_memory().total,
                                 .num_ranks = arguments.num_ranks,
                                 .zero_stage = arguments.zero_stage.value_or(settings.optim.zero_stage)},
                      .gradient_checkpointing = settings.model.gradient_checkpointing,
                      .tuner = settings.tuner,
                      .batches = settings.batches,
                      .pack = settings.pack,
                      .m_steps = settings.is_stage_2() ? settings.rollout_buffer.steps_per_window() : 1,
                      .generation = settings.generation,
                      .vllm = settings.vllm,
                      .offload = settings.offload,
                      .saves_state = !settings.checkpoints.save_only_model,
                      .sample_tokens = settings.model.global_max_length.value_or(kAssumedTokens)};
  const bool evaluates = settings.data.val_jsonl.has_value() && settings.cadence.eval_when != When::kNever;
  if (settings.is_stage_2() || (settings.rollouts && evaluates)) request.backend = settings.backend;
  if (arguments.row_tokens > 0) request.sample_tokens = arguments.row_tokens;
  if (arguments.image_tokens) {
    request.visual_share = std::min(1.0, static_cast<double>(*arguments.image_tokens) / static_cast<double>(request.sample_tokens));
  }
  return request;
}

}  // namespace

int run_plan(const PlanArguments& arguments, std::ostream& out) {
  const std::optional<std::string> model_dir = model_dir_of(arguments.path);
  const Settings settings =
      model_dir ? usual_settings(*model_dir) : load_config(arguments.path, arguments.overrides, arguments.num_ranks).settings;
  if (model_dir && !arguments.overrides.empty()) {
    throw UserError(ErrorKind::kConfig, {.error = "--set needs a configuration",
                                         .where = arguments.path,
                                         .what = "a model directory has no keys to override",
                                         .fix = "name a YAML configuration instead of the model's directory"});
  }
  const PlanRequest request = request_of(settings, arguments);
  const MemoryPlan plan = make_plan(request);
  if (arguments.json) {
    out << plan_json(request, plan).dump(2) << "\n";
  } else {
    out << plan_text(request, plan, settings.model.directory);
  }
  return 0;
}

std::string check_memory(const PlanArguments& arguments) {
  const Settings settings = load_config(arguments.path, arguments.overrides, arguments.num_ranks).settings;
  std::error_code ignored;
  if (!fs::is_regular_file(join_path(settings.model.directory, "config.json"), ignored)) return "";
  const PlanRequest request = request_of(settings, arguments);
  if (request.device.memory_bytes == 0) return "";
  const int64_t least = least_bytes(request), memory = request.device.memory_bytes;
  const MemoryPlan plan = make_plan(request);
  const bool asked_for = arguments.gpu_memory_gib.has_value();
  if (least > memory && asked_for) {
    const std::vector<std::string> advice = advice_for(request, plan);
    throw UserError(ErrorKind::kConfig,
                    {.error = "this run cannot fit the device",
                     .where = fmt::format("--gpu-memory {}", *arguments.gpu_memory_gib),
                     .what = fmt::format("weights, optimizer and gradients alone take {} of {}; {} parameters, {} trained", gib_text(least),
                                         gib_text(memory), plan.parameters.total, plan.parameters.trainable),
                     .fix = fmt::format("{}; `rematch plan` shows every part", advice.front())});
  }
  if (plan.fits) return "";
  // Without --gpu-memory the run may be meant for another machine.
  return fmt::format("memory: {} on {} are expected at most, in the phase {}, and {} can be used; `rematch plan {}` shows what to change",
                     gib_text(plan.peak_bytes), asked_for ? "the GPU" : "a CPU like this machine's", plan.peak_phase,
                     gib_text(plan.usable_bytes), arguments.path);
}

}  // namespace rematch
