#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// Settings of the `vllm` backend only: `custom.extra.rollout_matching.vllm`.
struct VllmSettings {
  /// interpreter of an environment with vLLM; "python3": see find_interpreter()
  std::string python = "python3";
  int tensor_parallel_size = 4;  ///< ≥ 1
  /// fraction of the device's memory that the engine may use
  double gpu_memory_utilization = 0.45;
  /// tokens of prompt and answer together; 0 = as the prompts require
  int64_t max_model_len = 0;
  int sleep_level = 0;       ///< what the engine releases between rollouts, 0..2
  int max_num_seqs = 256;    ///< sequences decoded together at most
  int infer_batch_size = 0;  ///< prompts handed over together; 0 = all
  int max_images = 1;        ///< `limit_mm_per_prompt.image`
  int max_videos = 0;        ///< `limit_mm_per_prompt.video`
  /// Every other key with a value: vLLM's name and the value as JSON text, in the table's order.
  std::vector<std::pair<std::string, std::string>> engine_args;

  bool operator==(const VllmSettings&) const = default;
};

}  // namespace rematch
