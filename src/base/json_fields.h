#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/json.h"

namespace rematch {

/// The source of a JSON document and the wording of errors about it.
struct JsonOrigin {
  std::string path;  ///< of the file; empty = errors name only the place in the document
  /// e.g. "the training state of a checkpoint cannot be read"; "{}" stands for the place of the
  /// value
  std::string error;
  std::string fix;
  /// a null member counts as absent, as transformers reads its files
  bool null_is_absent = false;
  ErrorKind unknown_key = ErrorKind::kData;  ///< kind of the error of JsonFields::finish
};

/// @throws UserError (data).
/// @param place  in the document, e.g. "segments[3].images"; empty = the document itself
[[noreturn]] void throw_json_error(const JsonOrigin& origin, const std::string& place,
                                   const std::string& what);

/// Parses a document that a program wrote.
/// @throws UserError (data) with the origin's error and fix when it is not JSON
Json parse_document(std::string_view text, const JsonOrigin& origin);

/// Reader of the members of a JSON object. Keeps references to the value and the origin.
///
/// Getters throw UserError (data) for a missing or mistyped member, with its place, what was
/// expected and what was found; those named …_or return their fallback when the key is absent.
/// Every getter remembers its key for finish(). Integers may be written as 3, 3.0 or 3e0.
class JsonFields {
 public:
  /// @param place  of the object in the document, e.g. "cursor"
  JsonFields(const Json& value, const JsonOrigin& origin, std::string place = "");

  const Json& at(const std::string& key);
  /// Null when the key is absent.
  const Json* find(const std::string& key);
  bool has(const std::string& key) { return find(key) != nullptr; }

  int64_t integer(const std::string& key, int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t most = std::numeric_limits<int64_t>::max());
  template <typename Int>
  Int integer_or(const std::string& key, Int fallback,
                 int64_t least = std::numeric_limits<Int>::min(),
                 int64_t most = std::numeric_limits<Int>::max()) {
    return has(key) ? static_cast<Int>(integer(key, least, most)) : fallback;
  }
  /// A finite number.
  double number(const std::string& key);
  double number_or(const std::string& key, double fallback) {
    return has(key) ? number(key) : fallback;
  }
  bool boolean(const std::string& key);
  bool boolean_or(const std::string& key, bool fallback) {
    return has(key) ? boolean(key) : fallback;
  }
  std::string text(const std::string& key);
  std::string text_or(const std::string& key, const std::string& fallback) {
    return has(key) ? text(key) : fallback;
  }
  /// @param most  longest legal list
  const Json& list(const std::string& key, size_t most = std::numeric_limits<size_t>::max());
  /// A list of integers in the range of int, such as token ids.
  std::vector<int> integers(const std::string& key);
  /// A list of strings; empty when the key is absent or null.
  Strings texts(const std::string& key);
  JsonFields object(const std::string& key);
  /// As object(), but an empty object when the key is absent or null.
  JsonFields object_or_empty(const std::string& key);

  /// Rejects keys that no getter has read and suggests a similar one.
  /// @throws UserError of the kind JsonOrigin::unknown_key
  void finish() const;

  /// Place of a member, e.g. "cursor.epoch".
  std::string place_of(const std::string& key) const;
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  [[noreturn]] void fail_type(const std::string& key, const char* wanted, const Json& found) const;

  const Json* value_;
  const JsonOrigin* origin_;
  std::string place_;
  Strings asked_;
};

/// Reads an integer in [least, most].
/// @throws UserError (data) with `place`
int64_t json_integer(const Json& value, const JsonOrigin& origin, const std::string& place,
                     int64_t least, int64_t most);

}  // namespace rematch
