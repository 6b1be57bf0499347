#pragma once
#include <string>

#include "program/config/schema.h"

namespace rematch {

/// The type of a key's value as one word: "text", "choice", "integer", …
const char* type_word(const KeySpec& spec);

/// Choices, range, and values that are refused or give a warning, in words; "" if there are none.
std::string rule_words(const KeySpec& spec);

/// Describes a key, a section (all its keys), or all keys and sections whose path ends in the name,
/// e.g. "max_new_tokens" or "offload"; "" if nothing matches.
std::string explain_key(const std::string& name);

}  // namespace rematch
