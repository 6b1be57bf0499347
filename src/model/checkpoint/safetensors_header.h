#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace rematch {

/// A dtype of the safetensors format; all are in the table of safetensors_header.cc.
struct SafetensorsDtype {
  const char* name;  ///< "F32", "BF16", …
  int size_bytes;
  int rank;  ///< the reference writer sorts higher ranks first
};

/// The dtype with a name, or nullptr. Pointers stay valid and are unique for each name.
const SafetensorsDtype* find_safetensors_dtype(std::string_view name);

/// Description of a tensor in the header. Offsets are relative to the data area.
struct SafetensorsEntry {
  std::string name;
  const SafetensorsDtype* dtype = nullptr;
  std::vector<int64_t> shape;  ///< may be empty (a scalar); sizes may be 0
  uint64_t begin_bytes = 0;
  uint64_t end_bytes = 0;
};

/// A checked header: entries cover the data area without holes or overlaps, and the size of each
/// entry matches its shape.
struct SafetensorsHeader {
  std::vector<SafetensorsEntry> entries;        ///< in file order
  std::map<std::string, std::string> metadata;  ///< `__metadata__`
  uint64_t data_begin_bytes = 0;                ///< offset of the data area in the file
};

/// Reads and checks the header of a whole .safetensors file (MODEL 8).
/// @param file   all bytes of the file, trusted or not
/// @param where  its name in errors
/// @throws UserError (data) for a damaged or hostile file, naming the tensor and the numbers. Never
/// reads outside `file`. Cost: linear in the header, and one sort of its entries.
SafetensorsHeader parse_safetensors_header(std::string_view file, const std::string& where);

/// The header bytes (length, JSON, padding) that the reference writer produces for these entries.
/// Call sort_like_reference() first. Metadata is always {"format":"pt"}.
std::string write_safetensors_header(const std::vector<SafetensorsEntry>& entries);

/// Sorts entries like the reference writer (descending dtype rank, then name) and sets their
/// offsets from their shapes.
void sort_like_reference(std::vector<SafetensorsEntry>& entries);

}  // namespace rematch
