#include "base/terminal_text.h"

#include <gtest/gtest.h>

#include "base/keep_source.h"
#include "base/error.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

TEST(TerminalText, ShowsControlCharactersByTheirNumbers) {
  EXPECT_EQ(printable("a\x1b[31mb\x7f\n"), "a\\x1b[31mb\\x7f\\x0a");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("Schild \xC2\xA0é 猫"), "Schild \xC2\xA0é 猫");
}

TEST(TerminalText, QuotesWhatAShellWouldSplitOrExpand) {
  EXPECT_EQ(shell_word("out/train.jsonl"), "out/train.jsonl");
  EXPECT_EQ(shell_word("out dir/it's.jsonl"), "'out dir/it'\\''s.jsonl'");
  EXPECT_EQ(shell_word("$HOME"), "'$HOME'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(TerminalText, CountsInTheSingularAndThePlural) {
  EXPECT_EQ(counted(1, "image"), "1 image");
  EXPECT_EQ(counted(0, "image"), "0 images");
  EXPECT_EQ(counted(1, "box", "boxes"), "1 box");
  EXPECT_EQ(counted(2, "box", "boxes"), "2 boxes");
}

TEST(KeepSource, RefusesTheSameFileUnderAnyName) {
  const test::TempDir directory;
  const std::string path = directory.write("a/x.jsonl", "x"),
                    other = directory.write("a/y.jsonl", "x");
  for (const std::string& out : {path, directory.file("a/../a/./x.jsonl")})
    EXPECT_EQ(test::catch_user_error([&] { keep_source(path, out); }).kind(), ErrorKind::kConfig);
  EXPECT_NO_THROW(keep_source(path, other));
  EXPECT_NO_THROW(keep_source(path, directory.file("new.jsonl")));
}

}  // namespace rematch
