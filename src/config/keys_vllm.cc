// Keys of custom.extra.rollout_matching.vllm.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "config/keys.h"

namespace rematch {
namespace {

Json json_of(const KeyValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::same_as<Held, std::monostate> ||
                      std::same_as<Held, std::vector<TrainFile>>)  // no key of vLLM lists files
          return nullptr;
        else
          return held;
      },
      value);
}

constexpr const char* kPassedOn = "passed to the engine";

/// A key that is passed to vLLM under the same name unless null.
KeySpec handed_on(const char* name, KeyType type, std::string fallback = "") {
  KeySpec spec = plain_key(kRolloutMatching + ".vllm." + name, type, std::move(fallback));
  spec.help = kPassedOn;
  spec.fill = [name](Settings& all, const KeyValue& value) {
    if (!std::holds_alternative<std::monostate>(value))
      all.vllm.engine_args.emplace_back(name, json_of(value).dump());
  };
  return spec;
}

}  // namespace

std::vector<KeySpec> vllm_keys() {
  const std::string prefix = kRolloutMatching + ".vllm.";
  const KeysOf key(prefix, part<&Settings::vllm>);
  return {
      text_key(prefix + "mode", "colocate")
          .one_of({"colocate"})
          .refuses(
              "=server",
              "a server is never used by this trainer: set `colocate`, or `rollout_backend: hf`")
          .says("only `colocate`"),
      key("tensor_parallel_size", &VllmSettings::tensor_parallel_size)
          .within(1, 1024)
          .says("ranks that share one engine"),
      key("gpu_memory_utilization", &VllmSettings::gpu_memory_utilization)
          .within(0, 1)
          .above(0)
          .says("fraction of GPU memory that the engine may use"),
      key("max_model_len", &VllmSettings::max_model_len)
          .null_by_default()
          .within(1, 1 << 24)
          .says("null: global_max_length; if that is null, as the data requires"),
      boolean(prefix + "enable_lora", "false")
          .refuses("on", "weights are always merged before hand-over: set it to false")
          .says("only false"),
      handed_on("enable_prefix_caching", KeyType::kBool, "true"),
      key("sleep_level", &VllmSettings::sleep_level)
          .within(0, 2)
          .says("passed to the engine; with 2, vLLM may return garbage after waking"),
      handed_on("enforce_eager", KeyType::kBool, "false")
          .says("passed to the engine; always true on a CPU"),
      key("max_num_seqs", &VllmSettings::max_num_seqs).at_least(1).says(kPassedOn),
      handed_on("max_num_batched_tokens", KeyType::kInteger).at_least(1),
      handed_on("kv_cache_dtype", KeyType::kString),
      key("limit_mm_per_prompt.image", &VllmSettings::max_images).at_least(1).says(kPassedOn),
      key("limit_mm_per_prompt.video", &VllmSettings::max_videos).at_least(0).says(kPassedOn),
      key("infer_batch_size", &VllmSettings::infer_batch_size)
          .null_by_default()
          .at_least(1)
          .says("prompts per call; null: the whole window"),
      key("python", &VllmSettings::python)
          .says("interpreter whose environment has vLLM; python3: on PATH, else .venv-vllm"),
      handed_on("skip_mm_profiling", KeyType::kBool),
      handed_on("mm_encoder_tp_mode", KeyType::kString),
      handed_on("enable_chunked_prefill", KeyType::kBool),
      handed_on("disable_chunked_mm_input", KeyType::kBool),
      handed_on("cpu_offload_gb", KeyType::kNumber).within(0, 1e6),
      handed_on("swap_space", KeyType::kNumber).within(0, 1e6),
      handed_on("load_format", KeyType::kString).says("passed to the engine, except dummy"),
      handed_on("disable_custom_all_reduce", KeyType::kBool),
  };
}

}  // namespace rematch
