#pragma once
#include <string>

namespace rematch {

/// The meaning of a word that tables and progress lines print, such as "masters" of `rematch plan`
/// or "found by 8 samples" of `rematch probe`: "WORD (command)\n  meaning\n"; "" for other words.
/// Case and numbers do not matter.
std::string explain_printed_word(const std::string& word);

}  // namespace rematch
