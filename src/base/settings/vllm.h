#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// Settings of the `vllm` backend: `custom.extra.rollout_matching.vllm`.
struct VllmSettings {
  /// Python interpreter that has vLLM; "python3": see find_interpreter()
  std::string python = "python3";
  int tensor_parallel_size = 4;  ///< ≥ 1
  /// fraction of the device's memory that vLLM may use
  double gpu_memory_utilization = 0.45;
  /// most tokens in prompt and answer; 0 = as many as the prompts need
  int64_t max_model_len = 0;
  /// vLLM's sleep level between rollouts, 0..2; none = 1 on a GPU, where the engine would keep its
  /// memory while the model trains, else 0
  std::optional<int64_t> sleep_level;
  int max_num_seqs = 256;    ///< most sequences decoded together
  int infer_batch_size = 0;  ///< prompts per call; 0 = all
  int max_images = 1;        ///< `limit_mm_per_prompt.image`
  int max_videos = 0;        ///< `limit_mm_per_prompt.video`
  /// Other keys that have a value: vLLM's name and the value as JSON text, in the table's order.
  std::vector<std::pair<std::string, std::string>> engine_args;

  int64_t sleep_level_on(bool on_gpu) const { return sleep_level.value_or(on_gpu ? 1 : 0); }
  bool operator==(const VllmSettings&) const = default;
};

}  // namespace rematch
