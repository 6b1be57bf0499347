#pragma once
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rematch {

// Values as bytes for another process of the same build on the same kind of machine: numbers keep
// their bits, NaN included. A struct takes part when a function lists its fields once:
//
//   template <typename Wire>
//   void fields(Wire& wire, Rollout& rollout) { wire(rollout.sample_id, rollout.text); }
//
// Not for files: nothing here survives a change of the struct.

template <typename T>
struct IsWireMap : std::false_type {};
template <typename... Args>
struct IsWireMap<std::map<Args...>> : std::true_type {};
template <typename T>
struct IsWireVector : std::false_type {};
template <typename T>
struct IsWireVector<std::vector<T>> : std::true_type {};
template <typename T>
struct IsWirePair : std::false_type {};
template <typename A, typename B>
struct IsWirePair<std::pair<A, B>> : std::true_type {};
template <typename T>
struct IsWireArray : std::false_type {};
template <typename T, size_t N>
struct IsWireArray<std::array<T, N>> : std::true_type {};

template <typename T>
inline constexpr bool kIsWireNumber = std::is_arithmetic_v<T> || std::is_enum_v<T>;

/// Appends values to bytes.
class WireWriter {
 public:
  template <typename... Values>
  void operator()(const Values&... values) {
    (write(values), ...);
  }
  std::string take() { return std::move(bytes_); }

 private:
  template <typename T>
  void write(const T& value) {
    if constexpr (kIsWireNumber<T>) {
      bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      write(value.size());
      bytes_ += value;
    } else if constexpr (IsWirePair<T>::value) {
      write(value.first);
      write(value.second);
    } else if constexpr (IsWireVector<T>::value || IsWireMap<T>::value) {
      write(value.size());
      for (const auto& item : value) write(item);
    } else if constexpr (IsWireArray<T>::value) {
      for (const auto& item : value) write(item);
    } else {
      fields(*this, const_cast<T&>(value));  // fields() reads here and writes in WireReader
    }
  }

  std::string bytes_;
};

/// Takes values from bytes in the order in which they were written.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (read(values), ...);
  }
  bool is_at_end() const { return rest_.empty(); }

 private:
  std::string_view cut(size_t count) {
    REMATCH_CHECK(count <= rest_.size(), "a message of another rank is too short");
    const std::string_view head = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return head;
  }
  size_t read_size() {
    size_t size = 0;
    read(size);
    return size;
  }

  template <typename T>
  void read(T& value) {
    if constexpr (kIsWireNumber<T>) {
      std::memcpy(&value, cut(sizeof value).data(), sizeof value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = cut(read_size());
    } else if constexpr (IsWirePair<T>::value) {
      read(value.first);
      read(value.second);
    } else if constexpr (IsWireVector<T>::value) {
      value.clear();
      for (size_t left = read_size(); left > 0; --left) read(value.emplace_back());
    } else if constexpr (IsWireMap<T>::value) {
      value.clear();
      for (size_t left = read_size(); left > 0; --left) {
        std::pair<typename T::key_type, typename T::mapped_type> item;
        read(item);
        value.insert(std::move(item));
      }
    } else if constexpr (IsWireArray<T>::value) {
      for (auto& item : value) read(item);
    } else {
      fields(*this, value);
    }
  }

  std::string_view rest_;
};

/// Bytes of a value: a number, enum, string, pair, vector, map, array or struct with fields().
template <typename T>
std::string to_wire(const T& value) {
  WireWriter writer;
  writer(value);
  return writer.take();
}

/// The value that to_wire() wrote. A message that is too short or too long is a bug.
template <typename T>
T from_wire(std::string_view bytes) {
  WireReader reader(bytes);
  T value{};
  reader(value);
  REMATCH_CHECK(reader.is_at_end(), "a message of another rank is too long");
  return value;
}

}  // namespace rematch
