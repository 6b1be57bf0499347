#pragma once
#include <optional>
#include <string>

#include "text/jinja/interpreter.h"

/// Text functions that filters and methods share, as Python's str has them.
namespace rematch::jinja {

/// str.strip, lstrip or rstrip: whitespace, or any of the characters of `chars`.
std::string strip_text(Interpreter& interpreter, const std::string& text,
                       const std::optional<std::string>& chars, bool left, bool right);

/// str.replace; count < 0 = all. @throws TemplateError when the result is too long
std::string replace_text(Interpreter& interpreter, const std::string& text,
                         const std::string& old_part, const std::string& new_part, int64_t count);

/// "upper", "lower", "capitalize", "title" (str.title) or "title filter" (Jinja2's, which knows
/// words). @throws TemplateError for characters outside ASCII (their rules are not implemented)
std::string change_case(const std::string& text, const std::string& how);

/// JSON text with every character outside ASCII as \uXXXX (surrogate pairs above U+FFFF).
std::string escape_non_ascii(const std::string& json);

/// @throws TemplateError when a required argument is absent
void throw_if_missing(const std::string& callee, const std::optional<Value>& value,
                      const std::string& name);

}  // namespace rematch::jinja
