#pragma once
#include <optional>
#include <string_view>

#include "base/json.h"
#include "tools/import/ledger.h"

// Looks at JSON that may have any shape.
namespace rematch {

/// The first of several members that is there and not null; null without one, or if the value is
/// not an object.
const Json& member(const Json& value, std::initializer_list<const char*> keys);
/// Its text; "" for another value.
std::string text_member(const Json& value, std::initializer_list<const char*> keys);

/// An id as text: a whole number or a text; nullopt for other values.
std::optional<std::string> read_id(const Json& value);

/// The path of an image: a text, or a member of an object; "data:image/" for its bytes.
std::string image_path_of(const Json& value);

/// @throws LeftOut for a text that is not JSON
Json parse_record(std::string_view text);

/// Reads records one by one, from a JSON array or from JSON lines. A record that is LeftOut is
/// counted; reading continues with the next.
/// @throws UserError (data) for UTF-16, and for an array that is not JSON
void read_json_records(const std::string& path, std::string_view bytes,
                       const std::function<void(const Json&, const std::string& where)>& read,
                       Ledger& ledger);

}  // namespace rematch
