#include "base/full_match.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/capture.h"

namespace rematch {

TEST(FullMatch, MatchesWholeTextsOnly) {
  const FullMatch pattern(R"(a(b|bc)\d+)", "key");
  EXPECT_TRUE(pattern.matches("ab12"));
  EXPECT_TRUE(pattern.matches("abc1"));  // the second branch, found by going back
  EXPECT_FALSE(pattern.matches("xab12"));
  EXPECT_FALSE(pattern.matches("ab12x"));
  EXPECT_FALSE(pattern.matches("ab12\n"));
  EXPECT_TRUE(FullMatch("", "key").matches(""));
  EXPECT_TRUE(FullMatch("a|bc", "key").matches("bc"));
}

TEST(FullMatch, APatternThatDoesNotCompileNamesThePlace) {
  for (const char* pattern : {"a(b", "[", "*x", "(?P<n>a)(?P<n>b)", "\xff"}) {
    const UserError error =
        test::catch_user_error([&] { FullMatch(pattern, "tuner.target_regex"); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig) << pattern;
    EXPECT_EQ(error.problems()[0].where, "tuner.target_regex");
  }
}

TEST(FullMatch, RunawayPatternsAreAnErrorNotAHang) {
  const FullMatch pattern(R"((a|aa)+\d)", "key");
  EXPECT_EQ(test::catch_user_error([&] { pattern.matches(std::string(400, 'a')); }).kind(),
            ErrorKind::kConfig);
}

}  // namespace rematch
