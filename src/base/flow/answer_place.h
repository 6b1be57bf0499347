#pragma once
#include <cstddef>
#include <string_view>

namespace rematch {

/// The list of boxes inside the text of an answer.
struct AnswerPlace {
  size_t begin = 0;       ///< offset at which the list is read
  size_t start = 0;       ///< offset after a think block and `<answer>`
  bool in_think = false;  ///< the text ends inside a think block, before the answer
};

/// Finds the list of a model's answer in digits (BEHAVIOUR 19.4). Only the text after the last
/// `</think>` counts, and of it only the text after the last `<answer>`. There, the list begins
/// after the first fence ```` ```json ````, else at the beginning.
/// @param starts_in_think  the prompt has opened a think block
AnswerPlace find_answer(std::string_view text, bool starts_in_think);

/// The same in a record that a person wrote (BEHAVIOUR 19.10): without that fence the list may also
/// begin after a plain one, or at the first bracket that opens a list of objects.
AnswerPlace find_written_answer(std::string_view text);

/// True if the text after a list only closes its wrappers: fences, `</answer>`, white space.
bool closes_answer(std::string_view rest);

}  // namespace rematch
