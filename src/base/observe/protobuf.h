#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

// Writes protobuf messages field by field. Only TensorBoard's events need them, too little for a
// library.
namespace rematch::protobuf {

// Wire types.
inline constexpr int kVarint = 0;
inline constexpr int kFixed64 = 1;
inline constexpr int kBytes = 2;
inline constexpr int kFixed32 = 5;

/// Appends the bytes of a number, lowest first.
template <typename Number>
inline void put_fixed(std::string& out, Number value) {
  std::array<char, sizeof(Number)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);  // every supported machine is little-endian
  out.append(bytes.data(), bytes.size());
}

/// Appends a number in groups of seven bits, lowest first.
inline void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

inline void put_tag(std::string& out, int field, int wire_type) {
  put_varint(out, static_cast<uint64_t>(field << 3 | wire_type));
}

inline void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_tag(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

inline void put_number(std::string& out, int field, uint64_t value) {
  put_tag(out, field, kVarint);
  put_varint(out, value);
}

}  // namespace rematch::protobuf
