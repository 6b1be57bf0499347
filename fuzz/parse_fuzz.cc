// Strict parse of arbitrary bytes, spelt with one token a byte, coord tokens and unknown ids mixed
// in.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "estep/parse/strict_parser.h"
#include "text/stop_ids.h"
#include "text/tokenizer.h"

namespace {

struct Vocab {
  std::string directory = std::string(REMATCH_SOURCE_DIR) + "/tests/golden/tokenizer";
  std::shared_ptr<const rematch::Tokenizer> tokenizer = rematch::Tokenizer::load(directory);
  rematch::CoordVocab coord = rematch::CoordVocab::from(*tokenizer, directory);
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

// Whether `text` is JSON by its grammar. A number beyond a double's range is, though the library
// refuses to hold it.
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
  const rematch::ParsedRollout parsed = rematch::parse_rollout(
      ids_of(data, size, vocab), *vocab.tokenizer, vocab.coord, vocab.stop_ids);
  if (!is_json(parsed.prefix_text + "}")) std::abort();
  if (vocab.tokenizer->decode_bytes(parsed.prefix_token_ids) != parsed.prefix_text) std::abort();
  for (const rematch::ParsedObject& object : parsed.objects) {
    for (size_t i = 0; i < object.geometry.bins.size(); ++i) {
      const auto at = static_cast<size_t>(object.coord_token_indices[i]);
      if (vocab.coord.bin_of(parsed.prefix_token_ids.at(at)) != object.geometry.bins[i])
        std::abort();
    }
  }
  return 0;
}
