#pragma once
#include <string>

#include "base/settings/vllm.h"

namespace rematch {

class Group;

/// Options of the `vllm` backend: its settings, and facts about the session.
struct VllmOptions : VllmSettings {
  int world_size = 1;  ///< processes of this run
  /// configuration, tokenizer and image processor; weights come from the training model
  std::string model_dir;
  bool on_cpu = true;     ///< the training model's device
  bool bfloat16 = false;  ///< the training model's dtype; else float32
  std::string log_path;   ///< file of the engine's own messages; empty: none
  int device_index = 0;   ///< this rank's GPU

  // Several ranks only:
  int ranks_on_host = 1;  ///< ranks that share this host's memory
  /// ranks that run this engine together, on one host; null: only this rank
  Group* ranks = nullptr;
  std::string store_host;    ///< host of the ranks' key-value store
  int store_port = 0;        ///< its port
  std::string store_prefix;  ///< prefix of the engine's keys in the store
};

}  // namespace rematch
