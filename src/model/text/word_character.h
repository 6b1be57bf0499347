#pragma once

namespace rematch {

/// True for characters that `\w` matches in the reference implementation: letters, marks, decimal
/// digits, connectors and joiners.
/// @source Unicode UTS 18, Annex C
bool is_word_character(char32_t code_point);

}  // namespace rematch
