#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "flow/sample.h"

namespace rematch {

/// Bytes [begin, end) of a text.
struct ByteSpan {
  size_t begin = 0;
  size_t end = 0;

  bool operator==(const ByteSpan&) const = default;
};

/// Answer text, or a part of one, with the positions of the descriptions.
struct AnswerText {
  std::string text;
  /// the text between the quotes of each `desc`, escaped; ascending
  std::vector<ByteSpan> desc_values;
};

/// The whole answer for a scene, byte exact (BEHAVIOUR 2.7): `{"object_1": {"desc": "cat",
/// "bbox_2d": ["<|coord_5|>", …]}, …}`;
/// `{}` without objects.
AnswerText answer_text(const std::vector<SceneObject>& objects);

/// The text that completes a kept prefix: the missing objects numbered from `first_index`, and one
/// final `}`.
/// @param after_entry  the prefix has an entry already, so the first object needs ", " before it
AnswerText append_text(const std::vector<SceneObject>& missing, int64_t first_index,
                       bool after_entry);

/// The same text in canonical composition (NFC), piece by piece, with its spans. A tokenizer that
/// normalises encodes this one.
AnswerText normalized(const AnswerText& answer);

}  // namespace rematch
