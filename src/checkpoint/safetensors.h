#pragma once
#include <ATen/ATen.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace rematch {

/// Read-only view of one .safetensors file (memory mapped). Everything is checked on opening:
/// header size and JSON, dtypes, shapes, offsets without holes or overlaps, no duplicate keys
/// (MODEL 8).
class SafetensorsFile {
 public:
  /// @throws UserError (environment) unreadable, (data) damaged or hostile: names the tensor and
  /// the numbers
  static std::shared_ptr<SafetensorsFile> open(const std::string& path);
  ~SafetensorsFile();

  /// Names in file order.
  const std::vector<std::string>& names() const;
  bool has(const std::string& name) const;
  /// Shape without loading.
  std::vector<int64_t> shape(const std::string& name) const;
  at::ScalarType dtype(const std::string& name) const;
  /// A CPU tensor that owns a copy of the data (the map may be closed afterwards).
  at::Tensor tensor(const std::string& name) const;
  const std::map<std::string, std::string>& metadata() const;

 private:
  SafetensorsFile();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

struct TensorEntry {
  std::string name;
  at::Tensor tensor;  ///< any device; made contiguous on CPU when written
};

/// Writes a file byte-equal to the reference writer's (sorted by dtype rank, then name; header
/// padded to 8; metadata {"format":"pt"}). Not atomic by itself: write inside a StagedDirectory.
/// @throws UserError (environment), also on a full disk
void write_safetensors(const std::string& path, std::vector<TensorEntry> tensors);

}  // namespace rematch
