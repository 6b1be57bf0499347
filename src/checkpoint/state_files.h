#pragma once
#include <ATen/ATen.h>

#include <string>
#include <utility>
#include <vector>

namespace rematch {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// The files of `checkpoint-N/training_state/` on disk. Their meaning is up to resume/run_state.h.
struct StateFiles {
  std::string document;    ///< `state.json`
  NamedTensors optimizer;  ///< `optimizer.safetensors`
  NamedTensors segments;   ///< `segments.safetensors`
};

/// Name of the directory inside a checkpoint.
inline constexpr const char* kTrainingStateDir = "training_state";

/// Writes the three files and `manifest.json`: size and XXH3-64 hash of every file of the
/// checkpoint. Call it last, within the StagedDirectory of the checkpoint: it is not atomic by
/// itself.
/// @throws UserError (environment), e.g. on a full disk. Cost: reads the files once more, from the
/// page cache.
void write_state_files(const std::string& checkpoint_dir, const StateFiles& files);

/// A rank's share of a training state.
struct StatePart {
  int rank = 0;
  int size = 1;  ///< ranks that write one
};

/// Writes one rank's three files, without the manifest: of several ranks as
/// `state-00000-of-00002.json` and so on, each tensor in the file of one rank only. @throws
/// UserError (environment)
void write_state_part(const std::string& checkpoint_dir, const StateFiles& files,
                      const StatePart& part);
/// Writes the manifest over the parts of `num_parts` ranks, all of which are there. Cost and errors
/// as write_state_files.
void write_state_manifest(const std::string& checkpoint_dir, int num_parts);

/// Whether the checkpoint can be resumed from, without reading its tensors into memory: all files
/// of the manifest are there, unchanged.
/// @throws UserError (data): no training state (the fix depends on whether `save_only_model` wrote
/// it), or a missing, truncated, changed or
///         foreign file, with expected and found numbers. Cost: reads every file of the checkpoint
///         once.
void verify_state_files(const std::string& checkpoint_dir);

/// Reads what write_state_files wrote. @throws UserError as verify_state_files, which it calls
/// first
StateFiles read_state_files(const std::string& checkpoint_dir);
/// Reads the parts of all ranks that wrote one, by rank. @throws UserError as read_state_files
std::vector<StateFiles> read_state_parts(const std::string& checkpoint_dir);

/// The first rank's `state.json` alone, as it is: nothing is verified. @throws UserError (data)
/// when there is none
std::string read_state_document(const std::string& checkpoint_dir);

/// Path of a checkpoint's `state.json`, for errors about its content.
std::string state_document_path(const std::string& checkpoint_dir, const StatePart& part = {});

}  // namespace rematch
