#include "augment/side_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {

using testing::HasSubstr;

TEST(SideWords, FindsWholeWordsInAnyCase) {
  for (const char* text :
       {"left", "Left hand", "the RIGHT one", "left-turn sign", "turn_right", "(left)"})
    EXPECT_TRUE(says_a_side(text)) << text;
  for (const char* text : {"", "bright", "leftover", "upright", "copyright", "cleft", "rightful"})
    EXPECT_FALSE(says_a_side(text)) << text;
}

TEST(SideWords, NamesTheFirstPlacesAndTheirNumber) {
  std::vector<Sample> samples(4);
  for (Sample& sample : samples) {
    sample.where = "train.jsonl:" + std::to_string(&sample - samples.data() + 1);
    sample.objects = {{"left shoe", {}}, {"shoe", {}}};
  }
  samples[0].prompt = "Find the right one.";
  check_side_words({}, {{"template.system", "bright"}});
  const UserError error = test::catch_user_error(
      [&] { check_side_words(samples, {{"custom.user_prompt", "Left or right?"}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  const Problem& problem = error.problems().front();
  EXPECT_EQ(problem.where, "data.augment.hflip");
  EXPECT_THAT(problem.what, HasSubstr("6 texts: custom.user_prompt, train.jsonl:1: `prompt`, "
                                      "train.jsonl:1: \"left shoe\", …"));
  EXPECT_THAT(problem.fix, HasSubstr("hflip_words: true"));
}

}  // namespace rematch
