#include "learn/estep/answer/coord_token_text.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "learn/estep/answer/encode_answer.h"
#include "parse/vocab.h"
#include "support/capture.h"

namespace rematch {
namespace {

using test::vocab;

SceneObject box(const std::string& desc, std::vector<int> bins = {5, 6, 7, 8}) {
  return {desc, {GeometryKind::kBbox2d, std::move(bins)}};
}

std::vector<std::string> marked_texts(const AnswerText& answer) {
  std::vector<std::string> values;
  for (const ByteSpan& span : answer.marks)
    values.push_back(answer.text.substr(span.begin, span.end - span.begin));
  return values;
}

}  // namespace

TEST(AnswerText, IsByteExact) {
  const SceneObject sign{"sign", {GeometryKind::kPoly, {10, 20, 30, 40, 0, 999}}};
  EXPECT_EQ(
      answer_text({box("cat"), sign}).text,
      R"({"object_1": {"desc": "cat", "bbox_2d": ["<|coord_5|>", "<|coord_6|>", "<|coord_7|>", )"
      R"("<|coord_8|>"]}, )"
      R"("object_2": {"desc": "sign", "poly": [["<|coord_10|>", "<|coord_20|>"], )"
      R"(["<|coord_30|>", "<|coord_40|>"], ["<|coord_0|>", "<|coord_999|>"]]}})");
}

TEST(AnswerText, OfAnEmptySceneIsAnEmptyObject) { EXPECT_EQ(answer_text({}).text, "{}"); }

TEST(AnswerText, KeepsNonAsciiRawAndEscapesAsPythonDoes) {
  const AnswerText answer = answer_text({box("é 飞机 😀 \"A\" \\ / \x01\x1f\x7f")});
  EXPECT_EQ(marked_texts(answer),
            (std::vector<std::string>{"é 飞机 😀 \\\"A\\\" \\\\ / \\u0001\\u001f\x7f"}));
}

TEST(AnswerText, KnowsWhereDescriptionsStand) {
  EXPECT_EQ(marked_texts(answer_text({box("cat"), box("dog"), box("\"")})),
            (std::vector<std::string>{"cat", "dog", "\\\""}));
}

TEST(AppendText, OnlyClosesWhenNothingIsMissing) {
  EXPECT_EQ(append_text({}, 4, true).text, "}");
  EXPECT_EQ(append_text({}, 1, false).text, "}");
}

TEST(AppendText, StartsWithACommaBehindAnEntryAndCountsOn) {
  const std::string first =
      R"("object_7": {"desc": "cat", "bbox_2d": ["<|coord_5|>", "<|coord_6|>", "<|coord_7|>", )"
      R"("<|coord_8|>"]})";
  EXPECT_EQ(append_text({box("cat")}, 7, true).text, ", " + first + "}");
  EXPECT_EQ(append_text({box("cat")}, 7, false).text, first + "}");
  EXPECT_NE(
      append_text({box("a"), box("b")}, 1'000'000'000, true).text.find("\"object_1000000001\""),
      std::string::npos);
}

TEST(EncodeAnswer, MarksTheTokensThatTouchADescription) {
  const AnswerText answer = answer_text({box("cat \"x\""), box("😀")});
  const EncodedAnswer encoded = encode_answer(answer, *vocab().tokenizer);
  EXPECT_EQ(encoded.token_ids, vocab().encode(answer.text));
  EXPECT_EQ(encoded.bytes.bytes, answer.text);
  EXPECT_EQ(encoded.marks, answer.marks);
  for (const ByteSpan& mark : answer.marks) {
    const TokenSpan tokens = encoded.bytes.overlapping(mark.begin, mark.end);
    for (size_t i = 0; i < encoded.token_ids.size(); ++i) {
      const bool touches = encoded.bytes.begin(i) < mark.end && mark.begin < encoded.bytes.ends[i];
      const auto token = static_cast<int>(i);
      EXPECT_EQ(tokens.begin <= token && token < tokens.end, touches) << "token " << i;
    }
  }
}

TEST(EncodeAnswer, FindsDescriptionsThatTheTokenizerComposes) {
  // e + combining acute becomes one character, two bytes shorter than what was written.
  const EncodedAnswer decomposed =
      encode_answer(answer_text({box("e\xCC\x81t\xC3\xA9"), box("z")}), *vocab().tokenizer);
  const EncodedAnswer composed =
      encode_answer(answer_text({box("\xC3\xA9t\xC3\xA9"), box("z")}), *vocab().tokenizer);
  EXPECT_EQ(decomposed.token_ids, composed.token_ids);
  EXPECT_EQ(decomposed.marks, composed.marks);
}

TEST(AnswerFormat, KnowsTheEndOfAnAnswer) { EXPECT_EQ(vocab().format->im_end_id(), 362); }

}  // namespace rematch
