#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "tools/import/ledger.h"

// Looks at JSON that may have any shape.
namespace rematch {

/// A member; null if the value is not an object or the member is absent or null.
const Json* find_member(const Json& value, const char* key);
/// The first of several members that is there; null without one.
const Json* find_member(const Json& value, std::initializer_list<const char*> keys);
/// The text of the first member that is there; "" without one, or for another value.
std::string text_member(const Json& value, std::initializer_list<const char*> keys);

/// The name of an object: the first of several members that is there, null without one. Counts
/// those that say another name.
const Json* name_member(const Json& entry, std::initializer_list<const char*> keys, Ledger& ledger);

/// An id as text: a whole number or a text; nullopt for other values.
std::optional<std::string> read_id(const Json* value);

/// A member that is a number, also as text ("100"); nullopt for other values.
std::optional<double> number_member(const Json& value, const char* key);

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
