#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// What only the `vllm` backend asks for: `custom.extra.rollout_matching.vllm`.
struct VllmSettings {
  std::string python = "python3";        ///< interpreter whose environment holds vLLM; "python3": see find_interpreter()
  int tensor_parallel_size = 4;          ///< ≥ 1
  double gpu_memory_utilization = 0.45;  ///< part of the device's memory the engine may take
  int64_t max_model_len = 0;             ///< tokens of prompt and answer together; 0 = as long as the prompts ask for
  int sleep_level = 0;                   ///< what the engine gives back between rollouts, 0..2
  int max_num_seqs = 256;                ///< sequences decoded together at most
  int infer_batch_size = 0;              ///< prompts handed over together; 0 = all
  int max_images = 1;                    ///< `limit_mm_per_prompt.image`
  int max_videos = 0;                    ///< `limit_mm_per_prompt.video`
  /// Every other key that has a value, by vLLM's name with its value as JSON text, in the table's order.
  std::vector<std::pair<std::string, std::string>> engine_args;

  bool operator==(const VllmSettings&) const = default;
};

}  // namespace rematch
