#include "learn/estep/answer/encode_answer.h"

#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace rematch {

AnswerText normalize(const AnswerText& answer) {
  // ASCII punctuation neither composes nor reorders, so the pieces can be normalised separately.
  AnswerText result;
  const std::string_view text = answer.text;
  size_t at = 0;
  for (const ByteSpan& span : answer.marks) {
    result.text += normalize_nfc(text.substr(at, span.begin - at));
    const size_t begin = result.text.size();
    result.text += normalize_nfc(text.substr(span.begin, span.end - span.begin));
    result.marks.push_back({begin, result.text.size()});
    at = span.end;
  }
  result.text += normalize_nfc(text.substr(at));
  return result;
}

EncodedAnswer encode_answer(const AnswerText& answer, const Tokenizer& tokenizer) {
  EncodedAnswer encoded;
  encoded.token_ids = tokenizer.encode(answer.text);
  for (const TokenId id : encoded.token_ids) encoded.bytes.append(tokenizer.token_bytes(id));
  if (encoded.bytes.bytes == answer.text) {
    encoded.marks = answer.marks;
    return encoded;
  }
  AnswerText canonical = normalize(answer);
  if (encoded.bytes.bytes != canonical.text) {
    throw data_error({.error = "the tokenizer changes the text of an answer",
                      .where = answer.text.substr(0, 80),
                      .what = encoded.bytes.bytes.substr(0, 80),
                      .fix = "use a tokenizer.json without a normaliser, or with NFC"});
  }
  encoded.marks = std::move(canonical.marks);
  return encoded;
}

}  // namespace rematch
