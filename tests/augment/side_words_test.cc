#include "learn/augment/side_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {

using testing::HasSubstr;

TEST(SideWords, FindsLeftAndRightInAnyForm) {
  for (const char* text : {"left",
                           "Left hand",
                           "the RIGHT one",
                           "left-turn sign",
                           "turn_right",
                           "(left)",
                           "left2",
                           "left\u00A0shoe",
                           "\u201Cleft\u201D",
                           "the \u2018right\u2019 one",
                           "left\u2019s",
                           "left\u2014right",
                           "left\u2011hand",
                           "leftmost",
                           "rightmost",
                           "leftward",
                           "rightwards",
                           "left-handed",
                           "lefthanded",
                           "LeftArm",
                           "armLeft",
                           "LEFTarm",
                           "HTTPLeft",
                           "topleft",
                           "UpperLeft",
                           "rear-right",
                           "rearright",
                           "\uFF4C\uFF45\uFF46\uFF54",
                           "\uFF32\uFF49\uFF47\uFF48\uFF54",
                           "le\u00ADft",
                           "\u5DE6left"})
    EXPECT_TRUE(names_a_side(text, SideAxis::kLeftRight)) << text;
  for (const char* text : {"", "bright", "leftover", "upright", "copyright", "cleft", "rightful",
                           "Brighton", "rights", "downright", "top", "lower"})
    EXPECT_FALSE(names_a_side(text, SideAxis::kLeftRight)) << text;
}

TEST(SideWords, FindsTopAndBottomInAnyForm) {
  for (const char* text :
       {"top", "Bottom shelf", "upper-case", "LOWER", "the one above", "below", "TopLeft",
        "topleft", "uppermost", "downward", "upside down", "bottommost", "\uFF34\uFF4F\uFF50"})
    EXPECT_TRUE(names_a_side(text, SideAxis::kTopBottom)) << text;
  for (const char* text : {"", "laptop", "stop", "topic", "flower", "cup", "upright", "downtown",
                           "supper", "left", "rightmost"})
    EXPECT_FALSE(names_a_side(text, SideAxis::kTopBottom)) << text;
}

TEST(SideWords, NamesTheFirstPlacesAndTheirNumber) {
  std::vector<Sample> samples(4);
  for (Sample& sample : samples) {
    sample.where = "train.jsonl:" + std::to_string(&sample - samples.data() + 1);
    sample.objects = {{"left shoe", {}}, {"shoe", {}}};
  }
  samples[0].prompt = "Find the right one.";
  const AugmentSettings mirrored{.hflip = 0.5};
  check_side_words({}, {{"template.system", "bright"}}, mirrored);
  const UserError error = test::catch_user_error(
      [&] { check_side_words(samples, {{"custom.user_prompt", "Left or right?"}}, mirrored); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  const Problem& problem = error.problems().front();
  EXPECT_EQ(problem.where, "data.augment.hflip");
  EXPECT_THAT(problem.what, HasSubstr("6 texts: custom.user_prompt, train.jsonl:1: `prompt`, "
                                      "train.jsonl:1: \"left shoe\", …"));
  EXPECT_THAT(problem.fix, HasSubstr("hflip_words: true"));
}

TEST(SideWords, EachChangeHasItsOwnWordsAndItsOwnKey) {
  std::vector<Sample> samples(2);
  samples[0] = {.objects = {{"left wing", {}}}, .where = "a:1"};
  samples[1] = {.objects = {{"upper wing", {}}}, .where = "a:2"};
  const auto places = [&](const AugmentSettings& settings) {
    const UserError error =
        test::catch_user_error([&] { check_side_words(samples, {}, settings); });
    std::string text;
    for (const Problem& problem : error.problems())
      text += problem.where + ": " + problem.what + "\n";
    return text;
  };
  EXPECT_EQ(places({.hflip = 0.5}), "data.augment.hflip: 1 text: a:1: \"left wing\"\n");
  EXPECT_EQ(places({.vflip = 0.5}), "data.augment.vflip: 1 text: a:2: \"upper wing\"\n");
  EXPECT_EQ(places({.vflip = 0.5, .vflip_words = true, .rot90 = 0.5}),
            "data.augment.rot90: 2 texts: a:1: \"left wing\", a:2: \"upper wing\"\n");
  check_side_words(samples, {}, {.hflip = 1, .hflip_words = true, .rot90 = 1, .rot90_words = true});
  check_side_words(samples, {}, {.crop = 0.5});
}

}  // namespace rematch
