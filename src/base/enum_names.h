#pragma once
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// A value of an enum and the text that users write for it. An enum's ONE table of both stands
/// next to it:
///
///     enum class OtCost { kL1, kL2 };
///     constexpr auto names_of(OtCost) {
///       return std::to_array<EnumName<OtCost>>({{OtCost::kL1, "l1"}, {OtCost::kL2, "l2"}});
///     }
template <class E>
struct EnumName {
  E value;
  const char* name;
};

/// An enum with such a table.
template <class E>
concept NamedEnum = requires(E value) { names_of(value); };

/// The text of a value.
template <NamedEnum E>
constexpr const char* name_of(E value) {
  for (const EnumName<E>& row : names_of(E{})) {
    if (row.value == value) return row.name;
  }
  return "";
}

/// The value of a text, or nothing.
template <NamedEnum E>
constexpr std::optional<E> value_of(std::string_view name) {
  for (const EnumName<E>& row : names_of(E{})) {
    if (row.name == name) return row.value;
  }
  return std::nullopt;
}

/// Every text, in the table's order.
template <NamedEnum E>
Strings all_names() {
  Strings names;
  for (const EnumName<E>& row : names_of(E{})) names.emplace_back(row.name);
  return names;
}

}  // namespace rematch
