#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace rematch {

/// What to say when a document of a checkpoint is not as we write it.
struct JsonOrigin {
  std::string path;   ///< of the file
  std::string error;  ///< e.g. "the training state of a checkpoint cannot be read"
  std::string fix;
};

/// @throws UserError (data). @param key  where in the document, e.g. "segments[3].images"; empty = the document itself
[[noreturn]] void throw_json_error(const JsonOrigin& origin, const std::string& key, const std::string& what);

/// A document of a checkpoint. @throws UserError (data) with the origin's error and fix when it is no JSON
Json parse_document(std::string_view text, const JsonOrigin& origin);

/// An object of a document that a program wrote, read strictly: what is not there or has another type is an error that names its place.
/// Keeps references to the value and the origin. Every getter remembers its key for finish().
class JsonFields {
 public:
  JsonFields(const Json& value, const JsonOrigin& origin, std::string place = "");

  const Json& at(const std::string& key);
  bool has(const std::string& key) const;
  int64_t integer(const std::string& key, int64_t least = std::numeric_limits<int64_t>::min(),
                  int64_t most = std::numeric_limits<int64_t>::max());
  bool boolean(const std::string& key);
  std::string text(const std::string& key);
  /// @param most  longest legal list
  const Json& list(const std::string& key, size_t most = std::numeric_limits<size_t>::max());
  JsonFields object(const std::string& key);
  /// Refuses keys that nobody asked for.
  void finish() const;

  /// Place of a member, e.g. "cursor.epoch".
  std::string place_of(const std::string& key) const;
  [[noreturn]] void fail(const std::string& key, const std::string& what) const;

 private:
  const Json* value_;
  const JsonOrigin* origin_;
  std::string place_;
  std::vector<std::string> asked_;
};

/// A whole number within a range. @param place  for the error
int64_t json_integer(const Json& value, const JsonOrigin& origin, const std::string& place, int64_t least, int64_t most);

/// Text in a document: itself when it is UTF-8, else {"hex": …}, because file names may be any bytes.
Json bytes_json(const std::string& bytes);
/// What bytes_json wrote. @throws UserError (data)
std::string bytes_of(const Json& value, const JsonOrigin& origin, const std::string& place);

}  // namespace rematch
