#pragma once
#include <string>

#include "model/checkpoint/state_files.h"

namespace rematch::test {

/// Writes the training state of a single rank, with its manifest.
inline void write_state_files(const std::string& checkpoint_dir, const StateFiles& files) {
  write_state_shard(checkpoint_dir, files, {});
  write_state_manifest(checkpoint_dir, 1);
}

}  // namespace rematch::test
