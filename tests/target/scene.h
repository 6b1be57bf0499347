#pragma once
#include <string>
#include <vector>

#include "estep/target/encode_answer.h"
#include "flow/segment.h"
#include "parse/vocab.h"

namespace rematch::test {

inline const AnswerVocab& answer_vocab() {
  static const AnswerVocab instance =
      AnswerVocab::from(*vocab().tokenizer, vocab().coord, "golden");
  return instance;
}

inline SceneObject box_object(const std::string& desc, std::vector<int> bins) {
  return {desc, {GeometryKind::kBbox2d, std::move(bins)}};
}

/// The text of all tokens with a label.
inline std::string labelled_text(const Segment& segment) {
  std::vector<int> ids;
  for (const int label : segment.labels) {
    if (label != kIgnoreLabel) ids.push_back(label);
  }
  return vocab().tokenizer->decode_bytes(ids);
}

}  // namespace rematch::test
