#pragma once
#include <string>
#include <vector>

#include "base/flow/segment.h"
#include "learn/estep/answer/answer_format.h"
#include "parse/vocab.h"

namespace rematch::test {

inline const AnswerFormat& answer_format() { return *vocab().format; }

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
