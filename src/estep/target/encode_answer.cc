#include "estep/target/encode_answer.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rematch {
namespace {

// Tokens and spans ascend, so one walk finds where every token lies.
void locate_tokens(const AnswerText& answer, const Tokenizer& tokenizer, EncodedAnswer& encoded) {
  size_t begin = 0, desc = 0;
  for (const TokenId id : encoded.token_ids) {
    const size_t end = begin + tokenizer.token_bytes(id).size();
    while (desc < answer.desc_values.size() && answer.desc_values[desc].end <= begin) ++desc;
    encoded.in_desc.push_back(desc < answer.desc_values.size() &&
                              answer.desc_values[desc].begin < end);
    begin = end;
  }
}

}  // namespace

AnswerVocab AnswerVocab::from(const Tokenizer& tokenizer, const CoordVocab& coord_vocab,
                              const std::string& where) {
  const auto im_end = tokenizer.token_id("<|im_end|>");
  if (!im_end) {
    throw UserError(ErrorKind::kData,
                    {.error = "the tokenizer has no <|im_end|>",
                     .where = where,
                     .what = fmt::format("none of its {} ids is <|im_end|>", tokenizer.num_ids()),
                     .fix = "use the tokenizer.json of a model whose answers end with <|im_end|>"});
  }
  return {&tokenizer, &coord_vocab, *im_end};
}

EncodedAnswer encode_answer(const AnswerText& answer, const Tokenizer& tokenizer) {
  EncodedAnswer encoded;
  encoded.token_ids = tokenizer.encode(answer.text);
  const std::string spelt = tokenizer.decode_bytes(encoded.token_ids);
  if (spelt == answer.text) {
    locate_tokens(answer, tokenizer, encoded);
    return encoded;
  }
  const AnswerText canonical = normalized(answer);
  if (spelt != canonical.text) {
    throw UserError(ErrorKind::kData,
                    {.error = "the tokenizer changes the text of an answer",
                     .where = answer.text.substr(0, 80),
                     .what = spelt.substr(0, 80),
                     .fix = "use a tokenizer.json without a normaliser, or with NFC"});
  }
  locate_tokens(canonical, tokenizer, encoded);
  return encoded;
}

}  // namespace rematch
