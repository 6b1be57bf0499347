#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "model/checkpoint/safetensors_header.h"

namespace rematch {

/// Read-only view of one .safetensors file (memory mapped). Everything is checked on opening:
/// header size and JSON, dtypes, shapes, offsets without holes or overlaps, no duplicate keys
/// (MODEL 8).
class SafetensorsFile {
 public:
  /// @throws UserError (environment) if unreadable, (data) if damaged or hostile, naming the tensor
  /// and the numbers
  static std::shared_ptr<SafetensorsFile> open(const std::string& path);

  /// Names in file order.
  const Strings& names() const { return names_; }
  bool has(const std::string& name) const { return index_.count(name) != 0; }
  std::vector<int64_t> shape(const std::string& name) const;
  at::ScalarType dtype(const std::string& name) const;
  /// A copy of a tensor on the CPU. The file's pages are given back while it is copied.
  at::Tensor tensor(const std::string& name) const;
  /// The same for the values [begin, begin + count) of the flattened tensor; reads no others.
  at::Tensor values(const std::string& name, int64_t begin, int64_t count) const;
  /// The stored bytes of a tensor, valid as long as this object.
  std::string_view bytes(const std::string& name) const;
  /// Gives the memory of bytes() back, until they are read again.
  void drop(const std::string& name) const { file_.drop(bytes(name)); }
  const std::map<std::string, std::string>& metadata() const { return header_.metadata; }

 private:
  explicit SafetensorsFile(const std::string& path);
  const SafetensorsEntry& entry(const std::string& name) const;

  MappedFile file_;
  SafetensorsHeader header_;
  Strings names_;
  std::unordered_map<std::string, size_t> index_;
};

struct TensorEntry {
  std::string name;
  at::Tensor tensor;  ///< any device; made contiguous on CPU when written
};

/// Writes the same bytes as the reference writer (sorted by dtype rank, then name; header padded to
/// 8; metadata {"format":"pt"}). Not atomic: write inside a StagedDirectory.
/// @throws UserError (environment), e.g. on a full disk
void write_safetensors(const std::string& path, std::vector<TensorEntry> tensors);

}  // namespace rematch
