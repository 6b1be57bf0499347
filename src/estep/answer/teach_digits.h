#pragma once
#include <string>
#include <vector>

#include "estep/answer/answer_format.h"
#include "estep/answer/answer_text.h"
#include "text/tokenizer.h"

namespace rematch {

/// What is taught at each token of an answer whose numbers are digits (BEHAVIOUR 19.8): every token
/// is its own label, except at a shown number that differs from the true one. There the first token
/// at which the two spellings part is taught, and the rest of the number is not: what follows a
/// wrong digit has no right answer.
/// @param shown  marks are its numbers, in plain digits. @param truth  the true numbers, as many
/// Cost: the tokenizer on the answer, once more for each number that differs.
TaughtAnswer teach_digits(const AnswerText& shown, const std::vector<std::string>& truth,
                          const Tokenizer& tokenizer);

}  // namespace rematch
