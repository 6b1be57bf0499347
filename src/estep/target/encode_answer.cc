#include "estep/target/encode_answer.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rematch {
namespace {

// Both lists ascend, so one walk finds every overlap.
std::vector<bool> overlaps(const std::vector<TokenId>& token_ids, const std::vector<ByteSpan>& spans, const Tokenizer& tokenizer) {
  std::vector<bool> found;
  size_t begin = 0, next = 0;
  for (const TokenId id : token_ids) {
    const size_t end = begin + tokenizer.token_bytes(id).size();
    while (next < spans.size() && spans[next].end <= begin) ++next;
    found.push_back(next < spans.size() && spans[next].begin < end);
    begin = end;
  }
  return found;
}

}  // namespace

AnswerVocab AnswerVocab::from(const Tokenizer& tokenizer, const CoordVocab& coord_vocab, const std::string& where) {
  const auto im_end = tokenizer.token_id("<|im_end|>");
  if (!im_end) {
    throw UserError(ErrorKind::kData, {.error = "the tokenizer has no <|im_end|>",
                                       .where = where,
                                       .what = fmt::format("{} ids, none of them", tokenizer.num_ids()),
                                       .fix = "use the tokenizer.json of a model whose answers end with <|im_end|>"});
  }
  return {&tokenizer, &coord_vocab, *im_end};
}

EncodedAnswer encode_answer(const AnswerText& answer, const Tokenizer& tokenizer) {
  EncodedAnswer encoded;
  encoded.token_ids = tokenizer.encode(answer.text);
  const std::string spelt = tokenizer.decode_bytes(encoded.token_ids);
  if (spelt == answer.text) {
    encoded.in_desc = overlaps(encoded.token_ids, answer.desc_values, tokenizer);
    return encoded;
  }
  const AnswerText canonical = normalized(answer);
  if (spelt != canonical.text) {
    throw UserError(ErrorKind::kData, {.error = "the tokenizer changes the text of an answer",
                                       .where = answer.text.substr(0, 80),
                                       .what = spelt.substr(0, 80),
                                       .fix = "use a tokenizer.json without a normaliser, or with NFC"});
  }
  encoded.in_desc = overlaps(encoded.token_ids, canonical.desc_values, tokenizer);
  return encoded;
}

}  // namespace rematch
