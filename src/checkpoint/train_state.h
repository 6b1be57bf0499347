#pragma once
#include <ATen/ATen.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

using NamedTensors = std::vector<std::pair<std::string, at::Tensor>>;

/// What a checkpoint holds beside the model, so that a run can go on from it: `checkpoint-N/training_state/`.
struct TrainState {
  std::string document;    ///< `state.json`: one JSON document; what is in it is up to resume/run_state.h
  NamedTensors optimizer;  ///< `optimizer.safetensors`
  NamedTensors segments;   ///< `segments.safetensors`
};

/// Name of the directory inside a checkpoint.
inline constexpr const char* kTrainStateDir = "training_state";

/// Writes the three files and `manifest.json`: size and XXH3-64 hash of each of them and of the weights and config.json beside them, which
/// a run goes on from as well. Call it when the model is written, within the StagedDirectory of the checkpoint: it is not atomic by itself.
/// @throws UserError (environment), e.g. on a full disk. Cost: reads the files once more, from the page cache.
void write_train_state(const std::string& checkpoint_dir, const TrainState& state);

/// Whether the checkpoint can be resumed from, without reading its tensors into memory: all files of the manifest are there, unchanged.
/// @throws UserError (data): no training state (the fix depends on whether `save_only_model` wrote it), or a missing, truncated, changed or
///         foreign file, with expected and found numbers. Cost: reads every file of the checkpoint once.
void verify_train_state(const std::string& checkpoint_dir);

/// Reads what write_train_state wrote. @throws UserError as verify_train_state, which it calls first
TrainState read_train_state(const std::string& checkpoint_dir);

/// XXH3-64 of bytes as 16 hex digits: tells contents apart that should be the same.
std::string content_hash_of(std::string_view bytes);

/// Where `state.json` of a checkpoint lies, for errors about its content.
std::string train_state_path(const std::string& checkpoint_dir);

}  // namespace rematch
