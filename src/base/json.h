#pragma once
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/strings.h"

namespace rematch {

/// JSON value that keeps the order of keys. Include <nlohmann/json.hpp> only where a value is
/// accessed (it is slow to compile).
using Json = nlohmann::ordered_json;

/// Reads one JSON document strictly (RFC 8259, UTF-8): duplicate keys, zero bytes, trailing text
/// and nesting beyond 512 levels are errors.
/// @param text    the document
/// @param origin  its name in errors, e.g. a path or "data.jsonl:17"
/// @throws UserError (data) with origin:line:col
/// Cost: linear, also for objects with 100 000 keys (nlohmann's own ordered parser is quadratic
/// there).
Json parse_json(std::string_view text, const std::string& origin);

/// Reads a file as one JSON document.
/// @throws UserError (environment) when unreadable, (data) when not JSON.
Json read_json_file(const std::string& path);

/// Writes a value as Python's `json.dumps(value, ensure_ascii=False, indent=indent)` does; indent <
/// 0 is one line with ", " and ": ".
std::string python_json(const Json& value, int indent = -1);

/// A value and a line end, as python_json() writes the value. The line ends of Unicode, at
/// which Python's splitlines() cuts, are escaped.
std::string json_line(const Json& value);

/// Escapes the line ends of Unicode in a JSON text.
void escape_line_ends(std::string& json);

/// A string between quotes as Python's `json.dumps(text, ensure_ascii=False)` writes it.
std::string python_json_string(std::string_view text);

/// A value for error messages: one line of UTF-8, cut after at most `most` bytes, then with "…".
std::string show_json(const Json& value, size_t most = 80);

}  // namespace rematch
