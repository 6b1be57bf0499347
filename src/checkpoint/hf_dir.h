#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "checkpoint/model_dir.h"
#include "checkpoint/safetensors.h"

namespace rematch {

/// A Hugging Face model directory opened for reading: weights in one safetensors file or in shards,
/// and the other files (MODEL 8).
class HfDir {
 public:
  /// Opens every shard and checks its header; no tensor is loaded.
  /// @param file_names  prefixes of names in the files and what they are called here; the first
  /// that fits replaces
  /// @throws UserError (config) when it is not a directory, (data) when weights are missing,
  /// damaged or disagree with the index, or two
  ///         tensors get one name
  static std::shared_ptr<const HfDir> open(
      const std::string& directory,
      const std::vector<std::pair<std::string, std::string>>& file_names = {});
  ~HfDir();

  const std::string& path() const;
  /// All tensor names, sorted.
  const std::vector<std::string>& names() const;
  bool has(const std::string& name) const;
  std::vector<int64_t> shape(const std::string& name) const;
  at::ScalarType dtype(const std::string& name) const;
  /// A CPU tensor with its own copy of the data. @throws UserError (data) when it is missing, with
  /// similar names
  at::Tensor tensor(const std::string& name) const;
  /// Name of the weights file that holds a tensor.
  const std::string& file_name(const std::string& name) const;
  /// What a tensor is called in its file; for one that is not stored, what it would be called
  /// beside those that are.
  std::string stored_name(const std::string& name) const;

 private:
  HfDir();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct SaveOptions {
  /// > 0; a tensor larger than this gets a shard of its own
  int64_t max_shard_bytes = 5'000'000'000;
};

/// Writes weights as `model.safetensors`, or as shards with an index when they exceed one shard.
/// Shards fill in the order of `tensors`. Not atomic by itself: write inside a StagedDirectory.
/// @throws UserError (environment)
void write_hf_weights(const std::string& directory, const std::vector<TensorEntry>& tensors,
                      const SaveOptions& options = {});

/// Rewrites the weights of `source`, file by file under the same names, each tensor as `change`
/// returns it. Holds one file in memory.
/// @param change  takes name (of HfDir::names) and stored tensor, returns what to write
/// @param added   new tensors, in the last file
void rewrite_hf_weights(
    const HfDir& source, const std::string& directory,
    const std::function<at::Tensor(const std::string& name, const at::Tensor& tensor)>& change,
    const std::vector<TensorEntry>& added = {});

}  // namespace rematch
