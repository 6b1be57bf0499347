// Tokenizers as transformers 5 and tokenizers save them, with every post-processor and every flag
// of an added token.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/text/tokenizer.h"
#include "model/text/word_character.h"
#include "support/paths.h"

namespace rematch {
namespace {

// rows.jsonl of a directory of goldens: ids of texts by each of its tokenizers.
void expect_the_references_ids(const std::string& golden, int least_rows, size_t num_tokenizers) {
  const std::string directory = test::source_path("tests/golden/" + golden + "/");
  std::map<std::string, std::shared_ptr<const Tokenizer>> tokenizers;
  int num_rows = 0;
  for (const std::string& line : split(read_file(directory + "rows.jsonl"), '\n')) {
    if (line.empty()) continue;
    ++num_rows;
    const Json row = parse_json(line, "rows.jsonl");
    const std::string name = row["tokenizer"].get<std::string>();
    auto& tokenizer = tokenizers[name];
    if (!tokenizer) tokenizer = Tokenizer::load(directory + name);
    const std::vector<TokenId> ids = tokenizer->encode(row["text"].get<std::string>());
    EXPECT_EQ(ids, row["plain"].get<std::vector<TokenId>>()) << line;
    EXPECT_EQ(tokenizer->add_special_tokens(ids), row["special"].get<std::vector<TokenId>>())
        << line;
  }
  EXPECT_GE(num_rows, least_rows);
  EXPECT_GE(tokenizers.size(), num_tokenizers);
}

}  // namespace

TEST(SavedTokenizers, GiveTheReferencesIdsWithAndWithoutSpecialTokens) {
  expect_the_references_ids("text_saved", 300, 7);
}

TEST(SavedTokenizers, OfTransformers4LoadWithAndWithoutTokenizerJson) {
  expect_the_references_ids("text_saved_4x", 60, 2);
}

TEST(IsWordCharacter, KnowsLettersMarksDigitsConnectorsAndJoiners) {
  for (const char32_t c : {U'a', U'\u00e9', U'\u6f22', U'5', U'_', U'\u0301', U'\u200d', U'\u24b6',
                           U'\u2160', U'\u203f', U'\U00010d40'}) {
    EXPECT_TRUE(is_word_character(c)) << static_cast<uint32_t>(c);
  }
  for (const char32_t c : {U' ', U'-', U'.', U'\u00b2', U'\u20ac', U'\n', U'\u2028'})
    EXPECT_FALSE(is_word_character(c)) << static_cast<uint32_t>(c);
}

}  // namespace rematch
