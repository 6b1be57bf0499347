#include "program/assembly/plan_request.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "model/checkpoint/quantisation.h"
#include "model/families/family.h"
#include "program/assembly/load_model.h"
#include "program/assembly/open.h"

namespace rematch {
namespace {

constexpr int64_t kAssumedTokens = 4096;  // tokens of a sample without global_max_length

void require_config_json(const std::string& directory) {
  if (!is_dir(directory) || is_file(join_path(directory, "config.json"))) return;
  throw config_error({.error = "the model directory has no config.json",
                      .where = directory,
                      .what = "a plan needs no weights, but the model's sizes",
                      .fix = "copy the config.json of the model there, or name another directory"});
}

// Bytes per weight in the files, from config.json.
int64_t stored_value_bytes(const std::string& directory) {
  const Json config = read_json_file(join_path(directory, "config.json"));
  for (const char* key :
       {"/dtype", "/torch_dtype", "/text_config/dtype", "/text_config/torch_dtype"}) {
    const Json dtype = config.value(Json::json_pointer(key), Json());
    if (dtype.is_string()) return dtype == "bfloat16" || dtype == "float16" ? 2 : 4;
  }
  return 4;
}

}  // namespace

PlanRequest plan_request(const Settings& settings, const PlanDevice& device) {
  const ModelDtype dtype = settings.model.dtype;
  const bool is_half =
      dtype == ModelDtype::kBfloat16 || (dtype == ModelDtype::kAuto && device.on_gpu);
  require_config_json(settings.model.directory);
  const std::optional<FourBitSettings> stored = stored_quantisation(settings.model.directory);
  PlanRequest request{
      .model = describe_model(settings.model.directory),
      .stored_value_bytes = stored_value_bytes(settings.model.directory),
      .value_bytes = is_half ? 2 : 4,
      .four_bit = stored ? stored : settings.model.quantisation(),
      .stored_in_4bit = stored.has_value(),
      .device = device,
      .gradient_checkpointing = settings.model.gradient_checkpointing,
      .tuner = settings.tuner,
      .batches = settings.batches,
      .pack = settings.pack,
      .exact_ranks = settings.optim.exact_ranks,
      .m_steps = settings.is_stage_2() ? settings.rollout_buffer.steps_per_window() : 1,
      .generation = settings.generation,
      .vllm = settings.vllm,
      .offload = settings.offload,
      .saves_state = !settings.checkpoints.save_only_model,
      .sample_tokens = settings.model.global_max_length.value_or(kAssumedTokens)};
  require_adapter_in_four_bits(settings);
  request.device.nccl = settings.ddp_backend != DdpBackend::kGloo;
  if (needs_backend(Use::kTrain, settings)) request.backend = settings.backend;
  request.trains_on_rollouts = settings.is_stage_2();
  return request;
}

}  // namespace rematch
