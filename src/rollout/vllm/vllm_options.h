#pragma once
#include <string>

#include "settings/vllm.h"

namespace rematch {

/// What the `vllm` backend is asked for: the settings, and what the session knows beside them.
struct VllmOptions : VllmSettings {
  int world_size = 1;     ///< processes of this run
  std::string model_dir;  ///< configuration, tokenizer and image processor; weights come from the training model
  bool on_cpu = true;     ///< the training model's device
  bool bfloat16 = false;  ///< the training model's dtype; else float32
  std::string log_path;   ///< where the engine's own messages go; empty: nowhere
};

}  // namespace rematch
