#pragma once
#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace rematch {

/// 128 bits that stand for content (XXH3): wide enough that two contents of a run never share a key.
struct ContentKey {
  uint64_t low = 0;
  uint64_t high = 0;
  auto operator<=>(const ContentKey&) const = default;
};

/// XXH3-64 of bytes as 16 hexadecimal digits, for files: tells contents apart that should be the same.
std::string content_hash_of(std::string_view bytes);

/// Makes a key of pieces that come one after another. Where a piece ends does not count: feed lengths where it matters.
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
