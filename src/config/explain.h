#pragma once
#include <string>

#include "config/schema.h"

namespace rematch {

/// Type of a key's value in a word: "text", "choice", "integer", …
const char* type_word(const KeySpec& spec);

/// Choices, range and values with special treatment, in words; "" without any.
std::string rule_words(const KeySpec& spec);

/// The state of a key that is not honoured, with its reason or advice: "removed: …".
std::string state_words(const KeySpec& spec);

/// Everything the table says about a key, a section (its keys) or a name that ends the paths of
/// some, e.g. "max_new_tokens" or "offload".
/// @throws UserError (config) with the nearest names when there is none
std::string explain_key(const std::string& name);

/// A JSON Schema (draft 2020-12) of configuration files, for editors: types, choices, defaults and
/// meanings.
std::string config_json_schema();

}  // namespace rematch
