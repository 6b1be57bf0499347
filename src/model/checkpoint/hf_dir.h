#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "model/checkpoint/model_dir.h"
#include "model/checkpoint/safetensors.h"

namespace rematch {

/// A Hugging Face model directory opened for reading: weights in one safetensors file or in shards
/// (MODEL 8). Getters throw UserError (data) with similar names if a tensor is missing.
class HfDir {
 public:
  /// Opens every shard and checks its header; loads no tensor.
  /// @param file_names  pairs of a name prefix in the files and its replacement here; the first
  /// match applies
  /// @throws UserError (config) if it is not a directory, (data) if weights are missing, damaged or
  /// disagree with the index, or two tensors get one name
  static std::shared_ptr<const HfDir> open(
      const std::string& directory,
      const std::vector<std::pair<std::string, std::string>>& file_names = {});
  const std::string& path() const { return path_; }
  /// All tensor names, sorted.
  const Strings& names() const { return names_; }
  bool has(const std::string& name) const { return locations_.count(name) != 0; }
  std::vector<int64_t> shape(const std::string& name) const;
  at::ScalarType dtype(const std::string& name) const;
  /// A copy of a tensor on the CPU.
  at::Tensor tensor(const std::string& name) const;
  /// The same for the values [begin, begin + count) of the flattened tensor; reads no others.
  at::Tensor values(const std::string& name, int64_t begin, int64_t count) const;
  /// The stored bytes of a tensor, valid as long as this object.
  std::string_view bytes(const std::string& name) const;
  /// Gives the memory of bytes() back, until they are read again.
  void drop(const std::string& name) const;
  /// Name of the weights file that holds a tensor.
  const std::string& file_name(const std::string& name) const;
  /// Name of a tensor in its file. Never fails: for a tensor that is not stored, the name that
  /// follows from the stored tensors' prefixes.
  std::string stored_name(const std::string& name) const;

 private:
  struct Location {
    std::string file_name;
    std::shared_ptr<SafetensorsFile> file;
    std::string stored_name;
  };

  HfDir() = default;
  void add(const std::string& stored_name, const std::string& file_name,
           std::shared_ptr<SafetensorsFile> file);
  void open_single();
  void open_shards(const std::string& index_path);
  const Location& location(const std::string& name) const;

  std::string path_;
  Strings names_;
  std::unordered_map<std::string, Location> locations_;
  std::vector<std::pair<std::string, std::string>> prefixes_;  // stored, renamed
};

/// A warning about a directory with model.safetensors and an index that names other files: the
/// first is used, as in transformers. "" for any other directory.
std::string spare_weights_warning(const std::string& directory);

struct SaveOptions {
  /// > 0; a larger tensor gets a shard alone
  int64_t max_shard_bytes = 5'000'000'000;
};

/// Writes weights as `model.safetensors`, or as shards with an index if they exceed one shard.
/// Shards are filled in the order of `tensors`. Not atomic: write inside a StagedDirectory.
/// @throws UserError (environment)
void write_hf_weights(const std::string& directory, const std::vector<TensorEntry>& tensors,
                      const SaveOptions& options = {});

/// Writes the changed weights of `source` to `directory`, file by file under the same names, with
/// an index unless there is one file. Holds one file in memory.
/// @param change  maps a name (of HfDir::names) and the stored tensor to the tensor to write;
/// undefined = leave it out
/// @param added   new tensors, in the last file
void rewrite_hf_weights(
    const HfDir& source, const std::string& directory,
    const std::function<at::Tensor(const std::string& name, const at::Tensor& tensor)>& change,
    const std::vector<TensorEntry>& added = {});

}  // namespace rematch
