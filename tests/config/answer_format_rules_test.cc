// Settings that an answer format allows (BEHAVIOUR 19.6, 19.7), and orders of rewritten answers.
#include <filesystem>

#include "config/support.h"

namespace rematch {
namespace {

using test::effective;
using test::load_set;
using test::problem_of_set;
using test::stage2;

const std::string kStage2Variant = "custom.trainer_variant=rollout_matching_sft";
const std::string kDigits = "custom.answer_format=qwen_json";
const std::string kPolicy = "custom.extra.rollout_matching.target_policy";
const std::string kLosses = "custom.coord_soft_ce_w1.enabled";

TEST(RewriteOrder, OwnNeedsTheOrderOfTheAnswers) {
  const std::string own = stage2("rewrite_order=own");
  EXPECT_EQ(load_set({own, "custom.object_ordering=own"}).settings.target.rewrite_order,
            RewriteOrder::kOwn);
  for (const char* ordering : {"sorted", "random"}) {
    const Problem problem =
        problem_of_set({own, std::string("custom.object_ordering=") + ordering});
    EXPECT_EQ(problem.where, "--set " + own.substr(0, own.find('=')));
    EXPECT_EQ(problem.fix, "set `custom.object_ordering: own`, or `rewrite_order: rollout`");
  }
}

}  // namespace

TEST(AnswerFormat, IsNotChosenByDefault) {
  EXPECT_FALSE(load_set({}).settings.data.answer_format.has_value());
  EXPECT_EQ(load_set({kDigits}).settings.data.answer_format, "qwen_json");
  const Problem problem = problem_of_set({"custom.answer_format=qwen-json"});
  EXPECT_NE(problem.fix.find("qwen_json"), std::string::npos) << problem.fix;
}

TEST(AnswerFormat, WithDigitsRewritesAndHasNoLossOnBins) {
  const ConfigResult digits = load_set({kStage2Variant, kDigits});
  EXPECT_EQ(digits.settings.target.policy, "rewrite");
  EXPECT_EQ(effective(digits, kLosses).value, "false");
  EXPECT_EQ(effective(digits, kPolicy).origin, "derived from custom.answer_format");
  EXPECT_EQ(load_set({kStage2Variant}).settings.target.policy, "append");
  EXPECT_EQ(load_set({kStage2Variant, "custom.answer_format=coord_tokens"}).settings.target.policy,
            "append");
}

TEST(AnswerFormat, WithDigitsRefusesWhatNeedsCoordTokens) {
  const Problem append = problem_of_set({kStage2Variant, kDigits, kPolicy + "=append"});
  EXPECT_NE(append.where.find(kPolicy), std::string::npos) << append.where;
  EXPECT_NE(append.what.find("digits"), std::string::npos);
  const Problem losses = problem_of_set({kDigits, kLosses + "=true"});
  EXPECT_NE(losses.where.find(kLosses), std::string::npos) << losses.where;
  EXPECT_NE(losses.what.find("one token for each bin"), std::string::npos);
}

}  // namespace rematch
