#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include "base/enum_names.h"
#include "base/error.h"
#include "settings/train_file.h"

namespace rematch {

/// Type of a key's value. It decides how YAML text is read, never YAML's guess.
enum class KeyType {
  kString,      ///< any scalar, its text as written
  kInteger,     ///< unquoted decimal digits
  kNumber,      ///< unquoted, finite; 1e-4 and 3 are numbers
  kBool,        ///< unquoted true, false, 1, 0
  kStringList,  ///< a list of scalars; one scalar is a list of one
  kFiles,       ///< a path, or a list of paths and of `{path, weight}`
  kAny,         ///< not examined (ignored and refused keys)
};

/// A value passed between a key and a field; monostate is null.
using KeyValue = std::variant<std::monostate, bool, int64_t, double, std::string,
                              std::vector<std::string>, std::vector<TrainFile>>;

/// The text that YAML would be given for a value: shortest digits, lists in flow style, null as "".
std::string yaml_text(const KeyValue& value);

// The key type that follows from the type of a field: bool, integers, double, texts, enums with a
// table of names, lists of texts, and std::optional of these (absent = null).

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

template <class T>
constexpr KeyType key_type() {
  if constexpr (is_optional<T>) return key_type<typename T::value_type>();
  if constexpr (std::same_as<T, bool>) return KeyType::kBool;
  if constexpr (std::integral<T>) return KeyType::kInteger;
  if constexpr (std::floating_point<T>) return KeyType::kNumber;
  if constexpr (std::same_as<T, std::vector<std::string>>) return KeyType::kStringList;
  if constexpr (std::same_as<T, std::vector<TrainFile>>) return KeyType::kFiles;
  return KeyType::kString;
}

/// The texts that are legal for an enum's key; empty for every other type.
template <class T>
std::vector<std::string> choices_of() {
  if constexpr (NamedEnum<T>) return all_names<T>();
  return {};
}

/// The value of a field, as the value of its key.
template <class T>
KeyValue key_value(const T& field) {
  if constexpr (is_optional<T>) {
    return field ? key_value(*field) : KeyValue();
  } else if constexpr (NamedEnum<T>) {
    return std::string(name_of(field));
  } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    return static_cast<int64_t>(field);
  } else {
    return field;
  }
}

/// Writes a checked value (type, range, choices) into a field; null leaves the field as it is.
template <class T>
void assign(T& field, const KeyValue& value) {
  if (std::holds_alternative<std::monostate>(value)) return;
  if constexpr (is_optional<T>) {
    assign(field.emplace(), value);
  } else if constexpr (NamedEnum<T>) {
    const std::string& name = std::get<std::string>(value);
    const std::optional<T> found = value_of<T>(name);
    REMATCH_CHECK(found.has_value(), name);
    field = *found;
  } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    field = static_cast<T>(std::get<int64_t>(value));
  } else {
    field = std::get<T>(value);
  }
}

}  // namespace rematch
