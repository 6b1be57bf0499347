#include "learn/estep/parse/prefix.h"

#include <gtest/gtest.h>

#include "parse/vocab.h"

namespace rematch {
namespace {

using test::box_entry;
using test::vocab;

void expect_prefix(const ParsedRollout& parsed, const std::string& text) {
  EXPECT_EQ(parsed.prefix_text, text);
  EXPECT_EQ(vocab().tokenizer->decode_bytes(parsed.prefix_token_ids), text);
}

}  // namespace

TEST(Prefix, EndsWithTheLastCompleteEntry) {
  const std::string kept = "{" + box_entry("object_1");
  for (const char* tail :
       {"", "}", " }", ", ", "\n,\n\"obj", ", \"object_2\": {\"desc\": \"b\"", "x", "]"})
    expect_prefix(vocab().parse(kept + tail), kept);
}

TEST(Prefix, KeepsEntriesThatAreNotValidToo) {
  expect_prefix(vocab().parse("{" + box_entry("object_1") + ", \"foo\": [1, {\"b\": null}], \"ob"),
                "{" + box_entry("object_1") + ", \"foo\": [1, {\"b\": null}]");
}

TEST(Prefix, LeavesOutTheDelimiterOfANumber) {
  expect_prefix(vocab().parse("{\"a\": 12 , \"b"), "{\"a\": 12");
  expect_prefix(vocab().parse("{\"a\": true}"), "{\"a\": true");
  expect_prefix(vocab().parse("{\"a\": 1]"), "{\"a\": 1");
}

TEST(Prefix, IsTheOpeningBraceWithoutAnEntry) {
  expect_prefix(vocab().parse("{"), "{");
  expect_prefix(vocab().parse("{}"), "{");
  expect_prefix(vocab().parse("{\"object_1\": {\"desc"), "{");
  expect_prefix(vocab().parse("{ \"a\": x"), "{");
  expect_prefix(vocab().parse(" \n{ "), " \n{");
}

TEST(Prefix, IsAnEncodedBraceWhereNoneWasRead) {
  for (const char* text : {"", "  ", "Sure! {\"a\": 1}", "[{\"a\": 1}]", "12", "<|coord_5|>{"}) {
    const ParsedRollout parsed = vocab().parse(text);
    expect_prefix(parsed, "{");
    EXPECT_EQ(parsed.prefix_token_ids, vocab().encode("{")) << text;
  }
}

TEST(Prefix, KeepsIdsVerbatimEvenOddOnes) {
  // A spelling that the tokenizer itself would never choose.
  const std::vector<int> ids = vocab().spell("{\"foo\": \"bar\"");
  EXPECT_EQ(vocab().parse(ids).prefix_token_ids, ids);
}

TEST(Prefix, EncodesTheKeptBytesOfAStraddlingToken) {
  // The answer's first token is `{"`, its last `"]}}`.
  const std::vector<int> ids = vocab().encode("{" + box_entry("object_1") + "}");
  ASSERT_EQ(vocab().tokenizer->token_bytes(ids.front()), "{\"");
  ASSERT_EQ(vocab().tokenizer->token_bytes(ids.back()), "\"]}}");
  EXPECT_EQ(vocab().parse(std::vector<int>{ids.front()}).prefix_token_ids, vocab().encode("{"));
  std::vector<int> expected(ids.begin(), ids.end() - 1);
  for (const int id : vocab().encode("\"]}")) expected.push_back(id);
  EXPECT_EQ(vocab().parse(ids).prefix_token_ids, expected);
}

TEST(CutTokenIds, SpellsKeptBytesThatAreNotUtf8) {
  const TokenBytes tokens{"\xC3\xA9\"}", {1, 4}};  // the second token is A9 22 7D
  const int first = vocab().tokenizer->byte_token(0xC3);
  const std::vector<int> kept = cut_token_ids({first, 12345}, tokens, 3, *vocab().tokenizer);
  EXPECT_EQ(kept, (std::vector<int>{first, vocab().tokenizer->byte_token(0xA9),
                                    vocab().tokenizer->byte_token('"')}));
}

TEST(CutTokenIds, SpellsKeptBytesThatTheTokenizerWouldChange) {
  const TokenBytes tokens{"e\xCC\x81\"}",
                          {5}};  // e + combining acute: NFC would make it one character
  EXPECT_EQ(cut_token_ids({7}, tokens, 4, *vocab().tokenizer), vocab().spell("e\xCC\x81\""));
}

TEST(CutTokenIds, OfTheWholeTextIsTheIdsThemselves) {
  const TokenBytes tokens{"abc", {1, 3}};
  EXPECT_EQ(cut_token_ids({7, 8}, tokens, 3, *vocab().tokenizer), (std::vector<int>{7, 8}));
  EXPECT_EQ(cut_token_ids({7, 8}, tokens, 0, *vocab().tokenizer), std::vector<int>{});
}

}  // namespace rematch
