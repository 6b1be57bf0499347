#pragma once
#include <cstdint>
#include <string>

namespace rematch::test {

/// A .safetensors file with this header text and this many zero bytes of data.
inline std::string safetensors_bytes(const std::string& header, size_t data_bytes) {
  std::string bytes;
  for (int i = 0; i < 8; ++i)
    bytes += static_cast<char>(static_cast<uint64_t>(header.size()) >> (8 * i) & 0xff);
  return bytes + header + std::string(data_bytes, '\0');
}

}  // namespace rematch::test
