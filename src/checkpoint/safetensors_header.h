#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

/// A number format a .safetensors header may name. A row of the ONE table of dtypes
/// (safetensors_header.cc).
struct SafetensorsDtype {
  const char* name;  ///< "F32", "BF16", …
  int size_bytes;
  int rank;  ///< the reference writer puts higher ranks first
};

/// The row of a name; nullptr when there is none. Pointers stay valid and are unique for each name.
const SafetensorsDtype* find_safetensors_dtype(std::string_view name);

/// What the header says about one tensor. Offsets are relative to the data area.
struct SafetensorsEntry {
  std::string name;
  const SafetensorsDtype* dtype = nullptr;
  std::vector<int64_t> shape;  ///< may be empty (a scalar); sizes may be 0
  uint64_t begin_bytes = 0;
  uint64_t end_bytes = 0;
};

/// A checked header: entries cover the data area without holes or overlaps, and each holds as many
/// bytes as its shape says.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< in file order
  std::map<std::string, std::string> metadata;  ///< `__metadata__`
  uint64_t data_begin_bytes = 0;                ///< of the data area in the file
};

/// Reads and checks the header of a whole .safetensors file (MODEL 8).
/// @param file   all bytes of the file, from any source
/// @param where  its name in errors
/// @throws UserError (data) for anything damaged or hostile, naming the tensor and the numbers.
/// Never reads outside `file`. Cost: linear in the header, sorting its entries once.
SafetensorsHeader parse_safetensors_header(std::string_view file, const std::string& where);

/// The header bytes (length, JSON, padding) the reference writer gives for these entries, which
/// must already be in its order (sort_like_reference) with offsets set. Metadata is always
/// {"format":"pt"}.
std::string write_safetensors_header(const std::vector<SafetensorsEntry>& entries);

/// Orders entries as the reference writer does (dtype rank downwards, then name) and sets their
/// offsets from their shapes.
void sort_like_reference(std::vector<SafetensorsEntry>& entries);

}  // namespace rematch
