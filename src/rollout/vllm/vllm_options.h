#pragma once
#include <string>

#include "settings/vllm.h"

namespace rematch {

class Group;

/// Options of the `vllm` backend: its settings, and what the session knows in addition.
struct VllmOptions : VllmSettings {
  int world_size = 1;  ///< processes of this run
  /// configuration, tokenizer and image processor; weights come from the training model
  std::string model_dir;
  bool on_cpu = true;     ///< the training model's device
  bool bfloat16 = false;  ///< the training model's dtype; else float32
  std::string log_path;   ///< file of the engine's own messages; empty: none
  int device_index = 0;   ///< of this rank's GPU

  // Several ranks only:
  int ranks_on_host = 1;  ///< those that share this host's memory
  /// those that run one engine with this one, on one host; null: the engine is this rank's own
  Group* ranks = nullptr;
  std::string store_host;    ///< where the ranks' key-value store listens
  int store_port = 0;        ///< its port
  std::string store_prefix;  ///< of the engine's keys in it
};

}  // namespace rematch
