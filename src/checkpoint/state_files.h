#pragma once
#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

namespace rematch {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The files of `checkpoint-N/training_state/`. resume/run_state.h gives them their meaning.
struct StateFiles {
  std::string document;    ///< `state.json`
  NamedTensors optimizer;  ///< `optimizer.safetensors`
  NamedTensors segments;   ///< `segments.safetensors`
};

/// Name of the directory inside a checkpoint.
inline constexpr const char* kTrainingStateDir = "training_state";

/// Writes the three files and `manifest.json`: size and XXH3-64 hash of every file of the
/// checkpoint. Not atomic: call it last, inside the StagedDirectory of the checkpoint.
/// @throws UserError (environment), e.g. on a full disk. Cost: reads the files once from the page
/// cache.
void write_state_files(const std::string& checkpoint_dir, const StateFiles& files);

/// Identifies the files of one rank in a training state.
struct StateShard {
  int rank = 0;
  int size = 1;  ///< number of ranks that write files
};

/// Writes the three files of one rank, without the manifest; with several ranks as
/// `state-00000-of-00002.json` and so on, each tensor in the file of one rank only. @throws
/// UserError (environment)
void write_state_shard(const std::string& checkpoint_dir, const StateFiles& files,
                       const StateShard& shard);
/// Writes the manifest after `num_shards` ranks have written their files. Cost and errors as
/// write_state_files.
void write_state_manifest(const std::string& checkpoint_dir, int num_shards);

/// Checks that a run can resume from the checkpoint, without loading its tensors: all files of the
/// manifest exist and are unchanged.
/// @throws UserError (data) without a training state (the fix depends on whether `save_only_model`
/// wrote the checkpoint), or for a missing, truncated, changed or foreign file, with expected and
/// found numbers. Cost: reads every file of the checkpoint once.
void verify_state_files(const std::string& checkpoint_dir);

/// Verifies and reads the files of a single rank. @throws UserError as verify_state_files
StateFiles read_state_files(const std::string& checkpoint_dir);
/// Verifies and reads the files of all ranks, by rank. @throws UserError as verify_state_files
std::vector<StateFiles> read_state_shards(const std::string& checkpoint_dir);

/// The first rank's `state.json`, without verification. @throws UserError (data) if there is none
std::string read_state_document(const std::string& checkpoint_dir);

/// Path of a checkpoint's `state.json`, for errors about its content.
std::string state_document_path(const std::string& checkpoint_dir, const StateShard& shard = {});

}  // namespace rematch
