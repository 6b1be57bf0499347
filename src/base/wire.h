#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace rematch {

// Values as bytes for another process on the same kind of machine: numbers keep their bits, NaN
// included. A struct takes part when a function lists its fields once:
//
//   void fields(auto& wire, Rollout& rollout) { wire(rollout.sample_id, rollout.text); }
//
// The bytes hold no names and no types. A file of them needs a version number that every change of
// its structs raises (model/checkpoint/state_files.cc).

template <typename T, template <typename...> typename Template>
inline constexpr bool kIsA = false;
template <template <typename...> typename Template, typename... Args>
inline constexpr bool kIsA<Template<Args...>, Template> = true;

template <typename T>
inline constexpr bool kIsWireArray = false;
template <typename T, size_t N>
inline constexpr bool kIsWireArray<std::array<T, N>> = true;

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
    } else if constexpr (kIsA<T, std::pair>) {
      write(value.first);
      write(value.second);
    } else if constexpr (kIsA<T, std::shared_ptr>) {
      write(*value);
    } else if constexpr (kIsA<T, std::optional>) {
      write(value.has_value());
      if (value) write(*value);
    } else if constexpr (kIsWireArray<T>) {
      for (const auto& item : value) write(item);
    } else if constexpr (kIsA<T, std::vector> || kIsA<T, std::map>) {
      write(value.size());
      for (const auto& item : value) write(item);
    } else {
      fields(*this, const_cast<T&>(value));  // fields() reads here and writes in WireReader
    }
  }

  std::string bytes_;
};

/// Takes values from bytes in the order in which they were written. Any bytes are safe: reading
/// stops at the first that no writer makes, and a size beyond the bytes left takes no memory.
class WireReader {
 public:
  explicit WireReader(std::string_view bytes) : rest_(bytes) {}

  template <typename... Values>
  void operator()(Values&... values) {
    (read(values), ...);
  }
  /// True if the bytes were exactly the values that were read.
  bool is_complete() const { return !is_damaged_ && rest_.empty(); }

 private:
  std::string_view cut(size_t count) {
    is_damaged_ = is_damaged_ || count > rest_.size();
    const std::string_view head = rest_.substr(0, is_damaged_ ? 0 : count);
    rest_.remove_prefix(head.size());
    return head;
  }
  /// Size of a list; every item has at least one byte.
  size_t read_size() {
    size_t size = 0;
    read(size);
    is_damaged_ = is_damaged_ || size > rest_.size();
    return is_damaged_ ? 0 : size;
  }

  template <typename T>
  void read(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      uint8_t byte = 0;
      read(byte);
      is_damaged_ = is_damaged_ || byte > 1;
      value = byte == 1;
    } else if constexpr (kIsWireNumber<T>) {
      cut(sizeof value).copy(reinterpret_cast<char*>(&value), sizeof value);
    } else if constexpr (std::is_same_v<T, std::string>) {
      value = cut(read_size());
    } else if constexpr (kIsA<T, std::pair>) {
      read(value.first);
      read(value.second);
    } else if constexpr (kIsA<T, std::shared_ptr>) {
      auto made = std::make_shared<std::remove_const_t<typename T::element_type>>();
      read(*made);
      value = std::move(made);
    } else if constexpr (kIsA<T, std::optional>) {
      bool has_value = false;
      read(has_value);
      value.reset();
      if (has_value) read(value.emplace());
    } else if constexpr (kIsWireArray<T>) {
      for (auto& item : value) read(item);
    } else if constexpr (kIsA<T, std::vector>) {
      value.clear();
      for (size_t left = read_size(); left > 0 && !is_damaged_; --left) read(value.emplace_back());
    } else if constexpr (kIsA<T, std::map>) {
      value.clear();
      for (size_t left = read_size(); left > 0 && !is_damaged_; --left) {
        std::pair<typename T::key_type, typename T::mapped_type> item;
        read(item);
        value.insert(std::move(item));
      }
    } else {
      fields(*this, value);
    }
  }

  std::string_view rest_;
  bool is_damaged_ = false;
};

/// @param value  numbers, enums, strings, pairs, arrays, vectors, maps, optionals, shared pointers
/// (never null; shared values are written each time), and structs with fields()
template <typename T>
std::string to_wire(const T& value) {
  WireWriter writer;
  writer(value);
  return writer.take();
}

/// Bytes from a file; nullopt if to_wire cannot have written them.
template <typename T>
std::optional<T> try_from_wire(std::string_view bytes) {
  WireReader reader(bytes);
  T value{};
  reader(value);
  return reader.is_complete() ? std::optional<T>(std::move(value)) : std::nullopt;
}

/// Bytes from a rank of this run, which are whole.
template <typename T>
T from_wire(std::string_view bytes) {
  std::optional<T> value = try_from_wire<T>(bytes);
  REMATCH_CHECK(value.has_value(), "a message of another rank is damaged");
  return *std::move(value);
}

}  // namespace rematch
