#include "learn/estep/answer/answer_format.h"

#include <gtest/gtest.h>

#include "parse/vocab.h"

namespace rematch {
namespace {

using test::box_entry;
using test::vocab;
using enum ParseStatus;

constexpr int kNoToken = 1'000'000;

std::vector<int> operator+(std::vector<int> a, const std::vector<int>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

}  // namespace

TEST(ParseRollout, CutsAtTheFirstStopId) {
  const std::vector<int> answer = vocab().encode("{" + box_entry("object_1") + "}");
  for (const char* stop : {"<|im_end|>", "<|endoftext|>"}) {
    const ParsedRollout parsed =
        vocab().parse(answer + std::vector<int>{vocab().id(stop)} + answer);
    EXPECT_EQ(parsed.response_token_ids, answer) << stop;
    EXPECT_EQ(parsed.status, kComplete) << stop;
  }
  const ParsedRollout nothing = vocab().parse(std::vector<int>{vocab().id("<|im_end|>")} + answer);
  EXPECT_TRUE(nothing.response_token_ids.empty());
  EXPECT_EQ(nothing.status, kTruncated);
}

TEST(ParseRollout, ReadsOtherSpecialTokensAsTheirText) {
  EXPECT_EQ(vocab().parse("{" + box_entry("object_1") + ", <|im_start|>").status, kMalformed);
  const ParsedRollout parsed = vocab().parse("{" + box_entry("object_1", "a <|im_start|>") + "}");
  ASSERT_EQ(parsed.objects.size(), 1u);
  EXPECT_EQ(parsed.objects[0].desc, "a <|im_start|>");
}

TEST(ParseRollout, TreatsAnIdWithoutATokenAsAViolationWhereItStands) {
  const std::vector<int> head =
      vocab().encode("{" + box_entry("object_1") + ", \"object_2\": {\"desc\": \"b");
  for (const int id : {kNoToken, -1, -2147483647}) {
    const ParsedRollout parsed =
        vocab().parse(head + std::vector<int>{id} + vocab().encode("\"}}"));
    EXPECT_EQ(parsed.status, kMalformed);
    EXPECT_EQ(parsed.objects.size(), 1u);
    EXPECT_EQ(parsed.dropped_invalid, 1);
    EXPECT_EQ(parsed.response_token_ids.size(), head.size() + 1 + vocab().encode("\"}}").size());
  }
  const ParsedRollout at_start = vocab().parse(std::vector<int>{kNoToken});
  EXPECT_EQ(at_start.status, kMalformed);
  EXPECT_EQ(at_start.prefix_text, "{");
}

TEST(ParseRollout, IgnoresAnIdWithoutATokenBehindTheClosingBrace) {
  const ParsedRollout parsed = vocab().parse(vocab().encode("{" + box_entry("object_1") + "}") +
                                             std::vector<int>{kNoToken, -5});
  EXPECT_EQ(parsed.status, kComplete);
  EXPECT_EQ(parsed.objects.size(), 1u);
}

TEST(ParseRollout, DoesNotCompleteANumberAtAnIdWithoutAToken) {
  const ParsedRollout parsed =
      vocab().parse(vocab().encode("{\"a\": 1") + std::vector<int>{kNoToken});
  EXPECT_EQ(parsed.prefix_text, "{");
  EXPECT_EQ(parsed.dropped_invalid, 1);
}

TEST(ParseRollout, JoinsCharactersAcrossTokens) {
  const ParsedRollout parsed = vocab().parse(
      vocab().spell("{\"object_1\": {\"desc\": \"\xF0\x9F\x98\x80\", \"bbox_2d\": [\"") +
      std::vector<int>{vocab().coord.id_of(0)} +
      vocab().encode("\", " + test::coords({1, 2, 3}) + "]}}"));
  ASSERT_EQ(parsed.objects.size(), 1u);
  EXPECT_EQ(parsed.objects[0].desc, "😀");
}

TEST(ParseRollout, CountsCompleteEntriesThatAreNotValid) {
  EXPECT_EQ(vocab()
                .parse("{\"a\": 1, \"object_1\": {}, " + box_entry("object_2") + ", \"b\": [1]}")
                .dropped_invalid,
            3);
  EXPECT_EQ(vocab().parse("{" + box_entry("object_1") + "}").dropped_invalid, 0);
}

TEST(ParseRollout, CountsOneMoreForAnEntryThatWasBegun) {
  EXPECT_EQ(vocab().parse("{").dropped_invalid, 0);
  EXPECT_EQ(vocab().parse("{\"").dropped_invalid, 1);
  EXPECT_EQ(vocab().parse("{\"a\": 1, ").dropped_invalid, 1);
  EXPECT_EQ(vocab().parse("{\"a\": 1, \"").dropped_invalid, 2);
  EXPECT_EQ(vocab().parse("{\"a\": 1, x").dropped_invalid, 1);
  EXPECT_EQ(vocab().parse("{\"a\": 1").dropped_invalid, 1);
  EXPECT_EQ(vocab().parse("{\"a\": 1 ").dropped_invalid, 1);
  EXPECT_EQ(vocab().parse("{" + box_entry("object_1")).dropped_invalid, 0);
  EXPECT_EQ(vocab().parse("[\"").dropped_invalid, 0);
}

TEST(ParseRollout, TakesTheLargestIndexOfEveryKeptKeyValidOrNot) {
  EXPECT_EQ(
      vocab()
          .parse("{" + box_entry("object_2") + ", \"object_7\": 3, " + box_entry("object_4") + "}")
          .max_object_index,
      7);
  EXPECT_EQ(vocab().parse("{\"object_0\": 1}").max_object_index, 0);
  EXPECT_EQ(vocab().parse("{\"object_0012\": 1}").max_object_index, 12);
  EXPECT_EQ(vocab().parse("{\"foo\": 1}").max_object_index, std::nullopt);
  EXPECT_EQ(
      vocab().parse("{\"object_5\": {\"object_9\": 1}, \"x\": \"object_11\"}").max_object_index, 5);
  // not complete
  EXPECT_EQ(vocab().parse("{" + box_entry("object_1") + ", \"object_2\": {").max_object_index, 1);
  EXPECT_EQ(vocab().parse("{\"object_1000000000\": 1}").max_object_index, std::nullopt);
}

TEST(ParseRollout, KeepsObjectsWithTheSameKeyBoth) {
  const ParsedRollout parsed =
      vocab().parse("{" + box_entry("object_1", "a") + ", " + box_entry("object_1", "b") + "}");
  ASSERT_EQ(parsed.objects.size(), 2u);
  EXPECT_EQ(parsed.objects[1].desc, "b");
  EXPECT_EQ(parsed.dropped_invalid, 0);
}

TEST(ParseRollout, KeepsTheEntriesBeforeAViolation) {
  const ParsedRollout parsed =
      vocab().parse("{" + box_entry("object_1") + ", " + box_entry("object_2") + ", oops");
  EXPECT_EQ(parsed.status, kMalformed);
  EXPECT_EQ(parsed.objects.size(), 2u);
  EXPECT_EQ(parsed.prefix_text, "{" + box_entry("object_1") + ", " + box_entry("object_2"));
}

TEST(ParseRollout, DoesNotRecoverBehindAViolation) {
  const ParsedRollout parsed = vocab().parse("{\"object_1\": x, " + box_entry("object_2") + "}");
  EXPECT_EQ(parsed.objects.size(), 0u);
  EXPECT_EQ(parsed.dropped_invalid, 1);
  EXPECT_EQ(parsed.max_object_index, std::nullopt);
}

}  // namespace rematch
