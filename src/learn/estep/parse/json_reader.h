#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/flow/parsed.h"

namespace rematch {

/// Deepest legal nesting. The top object has depth 0; every value, also a scalar, is one deeper
/// than its container.
inline constexpr int kMaxJsonDepth = 128;

/// A parsed value, possibly incomplete.
struct JsonNode {
  enum class Kind { kString, kArray, kObject, kScalar };  ///< kScalar: number, true, false, null

  Kind kind = Kind::kScalar;
  size_t begin = 0;  ///< offset of its first byte (the opening quote of a string)
  /// offset after its last byte; a number or literal ends before its delimiter
  size_t end = 0;
  std::string text;             ///< kString: unescaped
  Strings keys;                 ///< kObject: unescaped, one for each item; duplicates are kept
  std::vector<JsonNode> items;  ///< elements of an array, values of an object
};

/// The top level of a text that may be truncated or malformed anywhere.
struct JsonDocument {
  ParseStatus status = ParseStatus::kMalformed;
  std::optional<size_t> open_end;  ///< offset after the opening brace, if there is one
  JsonNode top;                    ///< complete entries only
  /// reading stopped inside an entry, after its first byte (opening quote of a member)
  bool entry_open = false;
};

/// Reads RFC 8259 JSON strictly and without repair, up to the closing brace of the top-level
/// object; ignores the rest. Violations: anything the grammar forbids, invalid UTF-8, raw
/// control characters in strings, lone surrogates, depth beyond kMaxJsonDepth, a top level that is
/// not an object. A valid UTF-8 sequence or escape cut off by the end is a truncation.
/// @param end_is_violation  the input is malformed after its last byte, not truncated
/// Never throws. Cost: linear.
JsonDocument read_json_object(std::string_view bytes, bool end_is_violation);

/// Reads a top-level array as read_json_object() reads an object; a top-level object is read as an
/// array of one. `open_end` stays empty.
/// @param begin  offset in `bytes` at which to start
JsonDocument read_json_list(std::string_view bytes, bool end_is_violation, size_t begin);

}  // namespace rematch
