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
#include "base/json.h"
#include "base/settings/train_file.h"

namespace rematch {

/// Type of a key's value. It alone decides how YAML text is read; YAML's own typing is not used.
enum class KeyType {
  kString,      ///< any scalar, its text as written
  kInteger,     ///< unquoted decimal digits
  kNumber,      ///< unquoted, finite; 1e-4 and 3 are numbers
  kBool,        ///< unquoted true, false, 1, 0
  kSwitch,      ///< as kBool, or another of the choices
  kStringList,  ///< a list of scalars; a single scalar counts as a list
  kFiles,       ///< a path, or a list of paths and of `{path, weight}`
  kAny,         ///< not checked (ignored and refused keys)
};

/// A value passed between a key and a field; monostate is null.
using KeyValue = std::variant<std::monostate, bool, int64_t, double, std::string, Strings,
                              std::vector<TrainFile>>;

inline bool is_null(const KeyValue& value) { return std::holds_alternative<std::monostate>(value); }
/// A value as YAML text: shortest digits, lists in flow style, null as "".
std::string yaml_text(const KeyValue& value);
/// A value as in args.json: the one file of a list that has its usual weight as text.
Json to_json(const KeyValue& value);

// The key type of a field's C++ type: bool, integers, double, texts, enums with a table of names,
// lists of texts, and std::optional of these (absent = null).

template <class T>
inline constexpr bool is_optional = false;
template <class T>
inline constexpr bool is_optional<std::optional<T>> = true;

/// An enum that has the texts of a bool.
template <class T>
constexpr bool is_switch() {
  if constexpr (NamedEnum<T>) return value_of<T>("true") && value_of<T>("false");
  return false;
}

template <class T>
constexpr KeyType key_type() {
  if constexpr (is_optional<T>) return key_type<typename T::value_type>();
  if constexpr (std::same_as<T, bool>) return KeyType::kBool;
  if constexpr (is_switch<T>()) return KeyType::kSwitch;
  if constexpr (std::integral<T>) return KeyType::kInteger;
  if constexpr (std::floating_point<T>) return KeyType::kNumber;
  if constexpr (std::same_as<T, Strings>) return KeyType::kStringList;
  if constexpr (std::same_as<T, std::vector<TrainFile>>) return KeyType::kFiles;
  return KeyType::kString;
}

/// The legal texts of an enum's key; empty for other types.
template <class T>
Strings list_choices() {
  if constexpr (NamedEnum<T>) return all_names<T>();
  return {};
}

/// Converts a field to the value of its key. An empty text is null, and so are no files.
template <class T>
KeyValue key_value(const T& field) {
  if constexpr (is_optional<T>) {
    return field ? key_value(*field) : KeyValue();
  } else if constexpr (NamedEnum<T>) {
    std::string name = name_of(field);
    if (is_switch<T>() && (name == "true" || name == "false")) return name == "true";
    return name;
  } else if constexpr (std::integral<T> && !std::same_as<T, bool>) {
    return static_cast<int64_t>(field);
  } else if constexpr (std::same_as<T, std::string> || std::same_as<T, std::vector<TrainFile>>) {
    return field.empty() ? KeyValue() : field;
  } else {
    return field;
  }
}

/// Writes a value, already checked for type, range and choices, to a field; null leaves the field
/// unchanged.
template <class T>
void assign(T& field, const KeyValue& value) {
  if (is_null(value)) return;
  if constexpr (is_optional<T>) {
    assign(field.emplace(), value);
  } else if constexpr (NamedEnum<T>) {
    const std::string name = yaml_text(value);
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
