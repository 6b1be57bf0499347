#include "base/error.h"

#include <gtest/gtest.h>

namespace rematch {

TEST(UserError, ShowsTheFourLinesOfEveryProblem) {
  const UserError error(ErrorKind::kConfig, {{"one", "a.yaml:1:2", "x = 3", "write 4"},
                                             {"two", "a.yaml:5:1", "y", "remove it"}});
  EXPECT_STREQ(error.what(),
               "error: one\n  where: a.yaml:1:2\n  what:  x = 3\n  fix:   write 4\n\n"
               "error: two\n  where: a.yaml:5:1\n  what:  y\n  fix:   remove it\n");
}

TEST(UserError, ShowsControlCharactersByTheirNumbers) {
  const UserError error(ErrorKind::kData,
                        {{"cannot open \x1b]0;owned\x07", "a\x1b[2J\nb.jpg",
                          "label \"\xC2\x9B\x33\x31mred\"\rover", "write\n  key: 1"}});
  EXPECT_STREQ(error.what(),
               "error: cannot open \\x1b]0;owned\\x07\n  where: a\\x1b[2J\\x0ab.jpg\n"
               "  what:  label \"\\x9b31mred\"\\x0dover\n  fix:   write\n  key: 1\n");
  EXPECT_EQ(error.problems().front().where, "a\x1b[2J\nb.jpg") << "the name itself is kept";
}

TEST(ErrorKind, HasTheExitCodesOfTheContract) {
  EXPECT_EQ(exit_code(ErrorKind::kConfig), 2);
  EXPECT_EQ(exit_code(ErrorKind::kData), 3);
  EXPECT_EQ(exit_code(ErrorKind::kEnvironment), 4);
  EXPECT_EQ(exit_code(ErrorKind::kBug), 70);
  EXPECT_EQ(exit_code(ErrorKind::kInterrupted), 130);
}

TEST(Check, SaysThatItIsABug) {
  try {
    REMATCH_CHECK(1 == 2, "1 and 2");
    FAIL();
  } catch (const InternalError& error) {
    EXPECT_NE(std::string(error.what()).find("1 == 2; 1 and 2 (this is a bug"), std::string::npos);
  }
}

}  // namespace rematch
