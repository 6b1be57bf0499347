#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

namespace rematch {

/// Appends a number's bytes, lowest first.
template <typename Number>
inline void put_fixed(std::string& out, Number value) {
  std::array<char, sizeof(Number)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);  // every supported machine is little-endian
  out.append(bytes.data(), bytes.size());
}

/// Appends a number in groups of seven bits, lowest first: as protobuf and Thrift write it.
inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

}  // namespace rematch
