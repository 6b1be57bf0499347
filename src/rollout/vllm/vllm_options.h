#pragma once
#include <string>

#include "settings/vllm.h"

namespace rematch {

/// Options of the `vllm` backend: its settings, and what the session knows in addition.
struct VllmOptions : VllmSettings {
  int world_size = 1;     ///< processes of this run
  std::string model_dir;  ///< configuration, tokenizer and image processor; weights come from the training model
  bool on_cpu = true;     ///< the training model's device
  bool bfloat16 = false;  ///< the training model's dtype; else float32
  std::string log_path;   ///< file of the engine's own messages; empty: none
};

}  // namespace rematch
