#pragma once
#include <memory>
#include <string>
#include <vector>

#include "learn/estep/answer/answer_format.h"
#include "model/text/stop_ids.h"
#include "model/text/tokenizer.h"
#include "support/paths.h"

namespace rematch::test {

/// The contract's small tokenizer and shorthands around it.
struct Vocab {
  std::shared_ptr<const Tokenizer> tokenizer =
      Tokenizer::load(source_path("tests/golden/tokenizer"));
  CoordVocab coord = CoordVocab::from(*tokenizer, "tests/golden/tokenizer");
  std::unique_ptr<const AnswerFormat> format =
      make_answer_format("coord_tokens", tokenizer, "tests/golden/tokenizer");
  std::vector<int> stop_ids = read_stop_ids(source_path("tests/golden/tokenizer"), *tokenizer);

  std::vector<int> encode(const std::string& text) const { return tokenizer->encode(text); }
  /// One token a byte.
  std::vector<int> spell(const std::string& bytes) const {
    std::vector<int> ids;
    for (const char c : bytes) ids.push_back(tokenizer->byte_token(static_cast<unsigned char>(c)));
    return ids;
  }
  int id(const std::string& content) const { return tokenizer->token_id(content).value(); }
  ParsedRollout parse(const std::vector<int>& ids) const {
    return format->parse(ids, stop_ids, {});
  }
  ParsedRollout parse(const std::string& text) const { return parse(encode(text)); }
};

inline const Vocab& vocab() {
  static const Vocab instance;
  return instance;
}

/// `"<|coord_1|>", "<|coord_2|>", …`
inline std::string coords(std::vector<int> bins) {
  std::string text;
  for (size_t i = 0; i < bins.size(); ++i)
    text += (i > 0 ? ", " : "") + ("\"<|coord_" + std::to_string(bins[i]) + "|>\"");
  return text;
}

/// A valid entry: `"object_N": {"desc": "a", "bbox_2d": […]}`.
inline std::string box_entry(const std::string& key, const std::string& desc = "a") {
  return "\"" + key + "\": {\"desc\": \"" + desc + "\", \"bbox_2d\": [" + coords({1, 2, 3, 4}) +
         "]}";
}

}  // namespace rematch::test
