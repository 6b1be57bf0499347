#pragma once
#include <string>
#include <vector>

#include "learn/estep/answer/answer_format.h"
#include "learn/estep/answer/encode_answer.h"
#include "model/text/tokenizer.h"

namespace rematch {

/// Supervision of an answer with numbers in digits (BEHAVIOUR 19.8). Every token is its own label,
/// except in a shown number that differs from the true one. There the label of the first differing
/// token is the true one, and the rest of the number is not supervised, since nothing correct can
/// follow a wrong digit.
/// @param shown  its marks are the numbers.
/// @param truth  the true numbers, one for each mark Cost: the tokenizer on the answer, and once
/// more for each differing number.
TaughtAnswer teach_digits(const AnswerText& shown, const Strings& truth,
                          const Tokenizer& tokenizer);

}  // namespace rematch
