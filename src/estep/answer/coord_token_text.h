#pragma once
#include <cstdint>
#include <vector>

#include "estep/answer/answer_text.h"
#include "flow/sample.h"

namespace rematch {

/// The whole answer for a scene, byte exact (BEHAVIOUR 2.7): `{"object_1": {"desc": "cat",
/// "bbox_2d": ["<|coord_5|>", …]}, …}`;
/// `{}` without objects. Marks are the texts between the quotes of each `desc`, escaped.
AnswerText answer_text(const std::vector<SceneObject>& objects);

/// The text that completes a kept prefix: the missing objects numbered from `first_index`, and one
/// final `}`.
/// @param after_entry  the prefix has an entry already, so the first object needs ", " before it
AnswerText append_text(const std::vector<SceneObject>& missing, int64_t first_index,
                       bool after_entry);

}  // namespace rematch
