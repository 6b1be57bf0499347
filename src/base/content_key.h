#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rematch {

/// A 128-bit content hash (XXH3), wide enough that no two contents of a run share a key.
struct ContentKey {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const ContentKey&) const = default;
};

/// XXH3-64 of bytes as 16 hexadecimal digits: detects that the content of a file has changed.
std::string content_hash_of(std::string_view bytes);

/// Hashes consecutive pieces into one key. Piece boundaries are not hashed: feed lengths where they
/// matter.
class ContentHasher {
 public:
  ContentHasher();
  ~ContentHasher();

  void feed(const void* data, size_t num_bytes);
  /// Feeds the bytes of a value; only for types without padding.
  template <typename Value>
  void feed_value(const Value& value) {
    feed(&value, sizeof(value));
  }
  ContentKey key() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace rematch
