// Any bytes as a .safetensors file: an error for the user or a header that stays inside the file,
// never a crash.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/error.h"
#include "model/checkpoint/safetensors_header.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view file(reinterpret_cast<const char*>(data), size);
  try {
    const rematch::SafetensorsHeader header = rematch::parse_safetensors_header(file, "fuzz");
    for (const rematch::SafetensorsEntry& entry : header.entries) {
      REMATCH_CHECK(entry.begin_bytes <= entry.end_bytes &&
                    header.data_begin_bytes + entry.end_bytes <= size);
    }
  } catch (const rematch::UserError&) {
  }
  return 0;
}
