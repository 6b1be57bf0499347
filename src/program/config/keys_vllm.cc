// Keys of custom.extra.rollout_matching.vllm.
#include <nlohmann/json.hpp>

#include "program/config/keys.h"

namespace rematch {
namespace {

constexpr const char* kPassedOn = "passed to vLLM";

/// A key that is passed to vLLM under the same name unless null.
KeySpec engine_key(const char* name, KeyType type, KeyValue fallback = {}) {
  KeySpec spec = plain_key(kRolloutMatching + ".vllm." + name, type, std::move(fallback));
  spec.help = kPassedOn;
  spec.fill = [name](Settings& all, const KeyValue& value) {
    if (!is_null(value)) all.vllm.engine_args.emplace_back(name, to_json(value).dump());
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
          .refuses("=server",
                   "a vLLM server is not supported: set `colocate`, or `rollout_backend: hf`")
          .says("only `colocate`"),
      key.of<&VllmSettings::tensor_parallel_size>("ranks that share one engine").within(1, 1024),
      key.of<&VllmSettings::gpu_memory_utilization>("fraction of GPU memory that vLLM may use")
          .within(0, 1)
          .above(0),
      key.of<&VllmSettings::max_model_len>(
             "most tokens in prompt and answer; null: global_max_length; if that is null, as "
             "much as the data needs")
          .null_by_default()
          .within(1, 1 << 24),
      boolean_key(prefix + "enable_lora", false)
          .refuses("on", "vLLM always gets merged weights: set it to false")
          .says("only false"),
      engine_key("enable_prefix_caching", KeyType::kBool, true),
      key.of<&VllmSettings::sleep_level>(
             "passed to vLLM; null: 1 on a GPU, whose memory vLLM then leaves to training, else "
             "0; with 2, vLLM may return garbage after waking")
          .within(0, 2)
          .null_is({"auto"}),
      engine_key("enforce_eager", KeyType::kBool, false)
          .says("passed to vLLM; always true on a CPU"),
      key.of<&VllmSettings::max_num_seqs>(kPassedOn).at_least(1),
      engine_key("max_num_batched_tokens", KeyType::kInteger).at_least(1),
      engine_key("kv_cache_dtype", KeyType::kString),
      key("limit_mm_per_prompt.image", &VllmSettings::max_images, kPassedOn).at_least(1),
      key("limit_mm_per_prompt.video", &VllmSettings::max_videos, kPassedOn).at_least(0),
      key.of<&VllmSettings::infer_batch_size>("prompts per call; null: the whole window")
          .null_by_default()
          .at_least(1),
      key.of<&VllmSettings::python>(
          "Python interpreter that has vLLM; python3: the one on PATH, else .venv-vllm"),
      engine_key("skip_mm_profiling", KeyType::kBool),
      engine_key("mm_encoder_tp_mode", KeyType::kString),
      engine_key("enable_chunked_prefill", KeyType::kBool),
      engine_key("disable_chunked_mm_input", KeyType::kBool),
      engine_key("cpu_offload_gb", KeyType::kNumber).within(0, 1e6),
      engine_key("swap_space", KeyType::kNumber).within(0, 1e6),
      engine_key("load_format", KeyType::kString).says("passed to vLLM, except dummy"),
      engine_key("disable_custom_all_reduce", KeyType::kBool),
  };
}

}  // namespace rematch
