#pragma once
#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace rematch {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The files of `checkpoint-N/training_state/`. learn/resume/run_state.h gives them their meaning.
struct StateFiles {
  std::string run;         ///< `state.bin`
  NamedTensors optimizer;  ///< `optimizer.safetensors`
};

/// Name of the directory inside a checkpoint.
inline constexpr const char* kTrainingStateDir = "training_state";

/// Identifies the files of one rank in a training state.
struct StateShard {
  int rank = 0;
  int size = 1;  ///< number of ranks that write files
};

/// Writes the two files of one rank, without the manifest; with several ranks as
/// `state-00000-of-00002.bin` and so on, each tensor in the file of one rank only.
/// @throws UserError (environment)
void write_state_shard(const std::string& checkpoint_dir, const StateFiles& files,
                       const StateShard& shard);
/// Writes `manifest.json` after `num_shards` ranks have written their files: size and XXH3-64 hash
/// of every file of the checkpoint. Not atomic: call it last, inside the StagedDirectory of the
/// checkpoint.
/// @throws UserError (environment), e.g. on a full disk. Cost: reads the files once from the page
/// cache.
void write_state_manifest(const std::string& checkpoint_dir, int num_shards);

/// Checks that a run can resume from the checkpoint, without loading its tensors: all files of the
/// manifest exist and are unchanged.
/// @throws UserError (data) without a training state (the fix depends on whether `save_only_model`
/// wrote the checkpoint), for one of another version, or for a missing, truncated, changed or
/// foreign file, with expected and found numbers. Cost: reads every file of the checkpoint once.
void verify_state_files(const std::string& checkpoint_dir);

/// Verifies and reads the files of all ranks, by rank.
/// @throws UserError as verify_state_files
std::vector<StateFiles> read_state_shards(const std::string& checkpoint_dir);

/// Paths of a checkpoint's `state.bin`, by rank, without verification.
/// @throws UserError (data) without a valid manifest
Strings run_state_paths(const std::string& checkpoint_dir);

}  // namespace rematch
