#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// What only the `vllm` backend asks for: `custom.extra.rollout_matching.vllm` and what the session knows beside it. The defaults here are
/// those of a tool without a configuration; the seeds' (tensor_parallel_size 4 …) are the configuration's.
struct VllmOptions {
  std::string python = "python3";    ///< interpreter whose environment holds vLLM; "python3": see find_interpreter()
  int tensor_parallel_size = 1;      ///< ≥ 1
  int world_size = 1;                ///< processes of this run
  int64_t max_model_len = 0;         ///< tokens of prompt and answer together; 0 = as long as the prompts ask for
  int infer_batch_size = 0;          ///< prompts handed over together; 0 = all
  int sleep_level = 0;               ///< what the engine gives back between rollouts, 0..2
  double memory_utilization = 0.45;  ///< `gpu_memory_utilization`: part of the device's memory the engine may take
  int max_num_seqs = 256;            ///< sequences decoded together at most
  /// Further engine arguments by vLLM's name, values as JSON text.
  std::vector<std::pair<std::string, std::string>> engine_args;
  std::string model_dir;  ///< configuration, tokenizer and image processor; weights come from the training model
  bool on_cpu = true;     ///< the training model's device
  bool bfloat16 = false;  ///< the training model's dtype; else float32
  std::string log_path;   ///< where the engine's own messages go; empty: nowhere
};

}  // namespace rematch
