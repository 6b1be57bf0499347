// Strict parse of arbitrary bytes, spelt with one token a byte, coord tokens and unknown ids mixed
// in.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "learn/estep/answer/answer_format.h"
#include "model/text/stop_ids.h"
#include "model/text/tokenizer.h"

namespace {

struct Vocab {
  std::string directory = std::string(REMATCH_SOURCE_DIR) + "/tests/golden/tokenizer";
  std::shared_ptr<const rematch::Tokenizer> tokenizer = rematch::Tokenizer::load(directory);
  rematch::CoordVocab coord = rematch::CoordVocab::from(*tokenizer, directory);
  std::unique_ptr<const rematch::AnswerFormat> format =
      rematch::make_answer_format("coord_tokens", tokenizer, directory);
  std::unique_ptr<const rematch::AnswerFormat> digits =
      rematch::make_answer_format("qwen_json", tokenizer, directory);
  std::vector<int> stop_ids = rematch::read_stop_ids(directory, *tokenizer);
};

// Bytes stand for themselves; 0x1A and a byte is one of the first coord tokens, 0x1B and a byte any
// small id, known or not.
std::vector<int> ids_of(const uint8_t* data, size_t size, const Vocab& vocab) {
  std::vector<int> ids;
  for (size_t i = 0; i < size; ++i) {
    if (data[i] == 0x1A && i + 1 < size) {
      ids.push_back(vocab.coord.id_of(data[++i]));
    } else if (data[i] == 0x1B && i + 1 < size) {
      ids.push_back(static_cast<int>(data[++i]) * 7 - 3);
    } else {
      ids.push_back(vocab.tokenizer->byte_token(data[i]));
    }
  }
  return ids;
}

// Returns true if `text` is JSON by its grammar. A number beyond a double's range is, though the
// library refuses to hold it.
bool is_json(const std::string& text) {
  try {
    return !nlohmann::json::parse(text).is_discarded();
  } catch (const nlohmann::json::out_of_range&) {
    return true;
  } catch (const nlohmann::json::parse_error&) {
    return false;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const Vocab vocab;
  const std::vector<int> ids = ids_of(data, size, vocab);
  const rematch::ParsedRollout digits = vocab.digits->parse(ids, vocab.stop_ids, {});
  for (const rematch::ParsedObject& object : digits.objects) {
    if (object.written.size() != 4 || object.coord_tokens.size() != 4) std::abort();
    if (object.entry.end > static_cast<int>(digits.response_token_ids.size())) std::abort();
    for (const rematch::TokenSpan& number : object.coord_tokens)
      if (number.begin >= number.end || number.end > object.entry.end) std::abort();
  }
  const rematch::ParsedRollout parsed = vocab.format->parse(ids, vocab.stop_ids, {});
  if (!is_json(parsed.prefix_text + "}")) std::abort();
  if (vocab.tokenizer->decode_bytes(parsed.prefix_token_ids) != parsed.prefix_text) std::abort();
  for (const rematch::ParsedObject& object : parsed.objects) {
    for (size_t i = 0; i < object.geometry.bins.size(); ++i) {
      const auto at = static_cast<size_t>(object.coord_tokens[i].begin);
      if (vocab.coord.bin_of(parsed.prefix_token_ids.at(at)) != object.geometry.bins[i])
        std::abort();
    }
  }
  return 0;
}
