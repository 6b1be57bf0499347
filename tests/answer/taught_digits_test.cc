// Supervision of a shown number that is wrong (BEHAVIOUR 19.8).
#include "learn/estep/answer/teach_digits.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "learn/estep/match/match_policy.h"
#include "learn/estep/teach/target_policy.h"
#include "parse/vocab.h"

namespace rematch {
namespace {

using test::vocab;

std::string text_of(const std::vector<TokenId>& ids) {
  return vocab().tokenizer->decode_bytes(ids);
}

/// The label of each token of a number as text; "-" where there is none.
std::vector<std::string> labels_of(const std::string& shown, const std::string& truth) {
  const AnswerText answer{"[" + shown + ", 7]",
                          {{1, 1 + shown.size()}, {3 + shown.size(), 4 + shown.size()}}};
  std::vector<std::string> labels;
  for (const TaughtToken& token : teach_digits(answer, {truth, "7"}, *vocab().tokenizer).tokens)
    labels.push_back(token.label == kIgnoreLabel ? "-" : text_of({token.label}));
  // "[" in front; ", 7]" behind
  return {labels.begin() + 1, labels.begin() + 1 + static_cast<std::ptrdiff_t>(shown.size())};
}

using Labels = std::vector<std::string>;

}  // namespace

// This tokenizer has one token for each digit.
TEST(TaughtDigits, EndAtTheFirstWrongDigit) {
  EXPECT_EQ(labels_of("123", "123"), (Labels{"1", "2", "3"}));
  EXPECT_EQ(labels_of("123", "129"), (Labels{"1", "2", "9"}));
  EXPECT_EQ(labels_of("123", "153"), (Labels{"1", "5", "-"}));
  EXPECT_EQ(labels_of("123", "923"), (Labels{"9", "-", "-"}));
  EXPECT_EQ(labels_of("123", "12"), (Labels{"1", "2", ","})) << "the number should have ended";
}

TEST(TaughtDigits, TeachAMissingDigitWhereTheNumberEnded) {
  const AnswerText answer{"[12, 7]", {{1, 3}, {5, 6}}};
  const TaughtAnswer taught = teach_digits(answer, {"123", "7"}, *vocab().tokenizer);
  ASSERT_EQ(taught.tokens[3].id, vocab().encode(",")[0]);
  EXPECT_EQ(text_of({taught.tokens[3].label}), "3") << "instead of the comma";
}

RC_GTEST_PROP(TaughtDigits, AreTheTruthUpToTheFirstWrongDigit, ()) {
  const auto shown = std::to_string(*rc::gen::inRange(0, 1001));
  const auto truth = std::to_string(*rc::gen::inRange(0, 1001));
  const Labels labels = labels_of(shown, truth);
  size_t at = 0;
  for (; at < shown.size() && at < truth.size() && shown[at] == truth[at]; ++at)
    RC_ASSERT(labels[at] == std::string(1, truth[at]));
  if (at < shown.size() && at < truth.size()) RC_ASSERT(labels[at] == std::string(1, truth[at]));
  for (size_t i = at + 1; i < shown.size(); ++i) RC_ASSERT(labels[i] == "-");
}

TEST(TaughtDigits, ShowANumberAsTheModelWroteIt) {
  // 500 is read as bin 500, which is written as 501.
  const auto format = make_answer_format("qwen_json", vocab().tokenizer, "golden");
  const std::string answer =
      "```json\n[\n\t{\"bbox_2d\": [500, 100, 700, 300], \"label\": \"cat\"}\n]\n```";
  const ParsedRollout parsed = format->parse(vocab().encode(answer), vocab().stop_ids, {});
  const std::vector<SceneObject> truth{{"cat", {GeometryKind::kBbox2d, {490, 100, 699, 300}}}};
  Prompt prompt;
  prompt.token_ids = vocab().encode("find");
  const Matching matching = match_objects(to_scene(parsed.objects), truth, {});
  const SegmentResult result =
      build_segment({prompt, parsed, matching, truth}, *format, {.policy = "rewrite"});
  EXPECT_EQ(result.append_text, answer);
  EXPECT_TRUE(result.segment.slots.empty());
}

}  // namespace rematch
