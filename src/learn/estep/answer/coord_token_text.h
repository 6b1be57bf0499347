#pragma once
#include <cstdint>
#include <vector>

#include "base/flow/sample.h"
#include "learn/estep/answer/encode_answer.h"

namespace rematch {

/// Writes the whole answer for a scene, byte exact (BEHAVIOUR 2.7): `{"object_1": {"desc": "cat",
/// "bbox_2d": ["<|coord_5|>", …]}, …}`;
/// `{}` without objects. Marks are the escaped texts between the quotes of each `desc`.
AnswerText answer_text(const Objects& objects);

/// Writes the text that completes a kept prefix: the missing objects, numbered from `first_index`,
/// and the final `}`.
/// @param after_entry  the prefix has an entry, so the first object needs ", " before it
AnswerText append_text(const Objects& missing, int64_t first_index, bool after_entry);

}  // namespace rematch
