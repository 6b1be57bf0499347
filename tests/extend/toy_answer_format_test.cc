// An answer format of one's own: a line of four bins and a label for each object.
#include <gtest/gtest.h>

#include <sstream>

#include "base/text.h"
#include "extend/in_process.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/parse/token_bytes.h"

namespace rematch {
namespace {

class Lines : public AnswerFormat {
 public:
  using AnswerFormat::AnswerFormat;

  TaughtAnswer teach(const std::vector<AnswerEntry>& entries, const Prompt&) const override {
    TaughtAnswer taught;
    for (const AnswerEntry& entry : entries) {
      for (size_t i = 0; i < 4; ++i)
        taught.text += std::to_string(entry.shown.geometry.bins[i]) + " ";
      taught.text += entry.shown.desc + "\n";
    }
    for (const TokenId id : tokenizer().encode(taught.text))
      taught.tokens.push_back({.id = id, .label = id});
    return taught;
  }

 private:
  ParsedRollout read(std::vector<TokenId> token_ids, const Prompt&) const override {
    ParsedRollout parsed;
    parsed.response_token_ids = std::move(token_ids);
    parsed.status = ParseStatus::kComplete;
    std::istringstream lines(TokenBytes::of_response(parsed.response_token_ids, tokenizer()).bytes);
    for (std::string line; std::getline(lines, line);) {
      std::istringstream words(line);
      ParsedObject object;
      for (int bin = 0; words >> bin && object.geometry.bins.size() < 4;)
        object.geometry.bins.push_back(bin);
      if (object.geometry.bins.size() == 4 && words >> object.desc) {
        parsed.objects.push_back(object);
      } else {
        ++parsed.dropped_invalid;
      }
    }
    return parsed;
  }
};

const bool format_added = answer_formats().add(
    {.name = "toy_lines",
     .meaning = "a line for each object",
     .entry_key = "",
     .built_in_prompt = [](ObjectOrdering) { return PromptTexts{"", "What is where?"}; },
     .make = [](std::shared_ptr<const Tokenizer> tokenizer,
                const std::string& where) -> std::unique_ptr<const AnswerFormat> {
       return std::make_unique<Lines>(std::move(tokenizer), where);
     }});

}  // namespace

TEST(ToyAnswerFormat, IsChosenByYamlAndTeachesItsAnswers) {
  ASSERT_TRUE(format_added);
  const auto log = test::trained_with(
      "max_new_tokens: 8", "coord_soft_ce_w1: {enabled: false}, answer_format: toy_lines");
  ASSERT_EQ(log.size(), 2u);
  for (const auto& line : log) {
    EXPECT_GT(line.at("loss/ce"), 0);
    EXPECT_GT(line.at("rollout/append_len_mean"), 4) << "tokens of the lines";
  }
}

}  // namespace rematch
