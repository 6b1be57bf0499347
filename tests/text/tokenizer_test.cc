#include "model/text/tokenizer.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <chrono>
#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/text/bpe.h"
#include "model/text/normalize.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::shared_ptr<const Tokenizer> first_tokenizer() {
  static const auto tokenizer = Tokenizer::load(test::source_path("tests/golden/tokenizer"));
  return tokenizer;
}

std::shared_ptr<const Tokenizer> second_tokenizer() {
  static const auto tokenizer =
      Tokenizer::load(test::source_path("tests/golden/text_tokenizer/second.json"));
  return tokenizer;
}

std::vector<Json> golden_rows() {
  std::vector<Json> rows;
  for (const std::string& line :
       split(read_file(test::source_path("tests/golden/text_tokenizer/strings.jsonl")), '\n')) {
    if (!line.empty()) rows.push_back(parse_json(line, "strings.jsonl"));
  }
  return rows;
}

// Text of `count` pieces chosen by rapidcheck: any code points, and what tokenizers find hard.
rc::Gen<std::string> any_text() {
  const auto character = rc::gen::map(rc::gen::inRange<uint32_t>(0, 0x110000), [](uint32_t code) {
    std::string text;
    append_utf8(text, code >= 0xD800 && code < 0xE000 ? U'\u0301' : static_cast<char32_t>(code));
    return text;
  });
  const auto atom =
      rc::gen::element<std::string>("<|im_end|>", "<|coord_7|>", "<|coord_", "circle", "e\u0301",
                                    "\u0323", " ", "\n", "the", "1", "<left>", " <right> ");
  return rc::gen::map(rc::gen::container<std::vector<std::string>>(rc::gen::oneOf(character, atom)),
                      [](const std::vector<std::string>& parts) { return join(parts, ""); });
}

}  // namespace

TEST(Tokenizer, GivesTheReferencesIdsOnManyScripts) {
  const std::vector<Json> rows = golden_rows();
  ASSERT_GE(rows.size(), 2000u);
  for (const Json& row : rows) {
    const std::string& text = row["text"].get_ref<const std::string&>();
    EXPECT_EQ(first_tokenizer()->encode(text), row["first"].get<std::vector<int>>())
        << row["text"].dump(-1, ' ', true);
    EXPECT_EQ(second_tokenizer()->encode(text), row["second"].get<std::vector<int>>())
        << row["text"].dump(-1, ' ', true);
  }
}

RC_GTEST_PROP(Tokenizer, DecodingGivesTheNormalisedTextBack, ()) {
  const std::string text = *any_text();
  // This tokenizer's added tokens are searched before normalisation; the text between them is
  // normalised by itself.
  std::string expected;
  std::string_view rest = text;
  while (true) {
    size_t at = std::string_view::npos;
    std::string token;
    for (const AddedToken& added : first_tokenizer()->added_tokens()) {
      const size_t found = rest.find(added.content);
      if (found < at) {
        at = found;
        token = added.content;
      }
    }
    expected += reference_nfc(rest.substr(0, at)) + token;
    if (at == std::string_view::npos) break;
    rest = rest.substr(at + token.size());
  }
  RC_ASSERT(first_tokenizer()->decode_bytes(first_tokenizer()->encode(text)) == expected);
}

RC_GTEST_PROP(BytePairEncoder, ShortAndLongWordsFollowTheSameRules, ()) {
  // Merges over two letters, so that repeats and overlaps abound; a naive loop is the reference.
  std::array<int, 256> byte_ids;
  for (int i = 0; i < 256; ++i) byte_ids[static_cast<size_t>(i)] = i;
  std::vector<BytePairEncoder::Merge> merges;
  std::vector<int> ids = {'a', 'b'};
  const int num_merges = *rc::gen::inRange(0, 12);
  for (int m = 0; m < num_merges; ++m) {
    const int left = *rc::gen::elementOf(ids);
    const int right = *rc::gen::elementOf(ids);
    merges.push_back({left, right, 300 + m});
    ids.push_back(300 + m);
  }
  const auto word =
      *rc::gen::container<std::string>(*rc::gen::inRange(0, 120), rc::gen::element('a', 'b'));
  std::vector<int> expected(word.begin(), word.end());
  for (bool changed = true; changed;) {
    changed = false;
    int best_rank = static_cast<int>(merges.size());
    size_t best = 0;
    for (size_t i = 0; i + 1 < expected.size(); ++i) {
      for (int rank = static_cast<int>(merges.size()) - 1; rank >= 0; --rank) {
        const auto& merge = merges[static_cast<size_t>(rank)];
        if (merge.left != expected[i] || merge.right != expected[i + 1]) continue;
        if (rank < best_rank) {
          best_rank = rank;
          best = i;
        }
        break;  // of a repeated pair the last rule counts
      }
    }
    if (best_rank < static_cast<int>(merges.size())) {
      expected[best] = merges[static_cast<size_t>(best_rank)].merged;
      expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      changed = true;
    }
  }
  std::vector<int> got;
  BytePairEncoder(byte_ids, merges).encode_word(word, got);
  RC_ASSERT(got == expected);
}

TEST(Tokenizer, HasAByteTokenForEveryByte) {
  for (int byte = 0; byte < 256; ++byte) {
    const int id = first_tokenizer()->byte_token(static_cast<unsigned char>(byte));
    EXPECT_EQ(first_tokenizer()->token_bytes(id), std::string(1, static_cast<char>(byte)));
  }
}

TEST(Tokenizer, FindsTokensByTheirBytes) {
  EXPECT_EQ(first_tokenizer()->token_id("<|im_end|>"), 362);
  const auto space_quote = first_tokenizer()->token_id(" \"");
  ASSERT_TRUE(space_quote.has_value());
  EXPECT_EQ(first_tokenizer()->token_bytes(*space_quote), " \"");
  EXPECT_FALSE(first_tokenizer()->token_id("no such token").has_value());
}

TEST(Tokenizer, SkipsIdsWithoutAToken) {
  EXPECT_EQ(first_tokenizer()->num_ids(), 1368);
  EXPECT_FALSE(first_tokenizer()->has_token(-1));
  EXPECT_FALSE(first_tokenizer()->has_token(1368));
  EXPECT_EQ(first_tokenizer()->decode_bytes({-5, 362, 1368, 2000000000}), "<|im_end|>");
  EXPECT_EQ(first_tokenizer()->token_bytes(99999), "");
}

TEST(Tokenizer, RefusesTextThatIsNotUtf8) {
  const UserError error = test::catch_user_error([] { first_tokenizer()->encode("caf\xe9"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
}

TEST(Tokenizer, TakesLongWordsInGoodTime) {
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& unit : {std::string("a"), std::string(" "), std::string("\u00e9"),
                                  std::string("\n"), std::string("!"), std::string("\u0301")}) {
    std::string text;
    while (text.size() < (1u << 20)) text += unit;
    EXPECT_EQ(second_tokenizer()->decode_bytes(second_tokenizer()->encode(text)), text);
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(30));
}

TEST(Tokenizer, IsSafeToShareBetweenThreads) {
  const std::vector<Json> rows = golden_rows();
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (size_t t = 0; t < wrong.size(); ++t) {
    threads.emplace_back([&, t] {
      for (size_t i = t; i < rows.size(); i += 7) {
        wrong[t] += second_tokenizer()->encode(rows[i]["text"].get_ref<const std::string&>()) !=
                    rows[i]["second"].get<std::vector<int>>();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
}

TEST(CoordVocab, ReadsShuffledIds) {
  const CoordVocab vocab = CoordVocab::from(*first_tokenizer(), "model");
  for (int bin = 0; bin < 1000; ++bin) {
    EXPECT_EQ(vocab.bin_of(vocab.id_of(bin)), bin);
    EXPECT_EQ(first_tokenizer()->token_bytes(vocab.id_of(bin)),
              "<|coord_" + std::to_string(bin) + "|>");
  }
  EXPECT_EQ(vocab.bin_of(362), -1);
  EXPECT_EQ(vocab.bin_of(-1), -1);
  EXPECT_EQ(vocab.bin_of(1 << 30), -1);
}

TEST(CoordVocab, NamesTheFirstMissingToken) {
  Json file = read_json_file(test::source_path("tests/golden/tokenizer/tokenizer.json"));
  Json& added = file["added_tokens"];
  for (auto token = added.begin(); token != added.end(); ++token) {
    if ((*token)["content"] == "<|coord_17|>") {
      added.erase(token);
      break;
    }
  }
  test::TempDir dir;
  const auto tokenizer = Tokenizer::load(dir.write("tokenizer.json", file.dump()));
  const UserError error =
      test::catch_user_error([&] { CoordVocab::from(*tokenizer, "some/model"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems().front().error.find("<|coord_17|>"), std::string::npos);
  EXPECT_NE(error.problems().front().fix.find("rematch add-coord-tokens"), std::string::npos);
  EXPECT_EQ(error.problems().front().where, "some/model");
}

}  // namespace rematch
