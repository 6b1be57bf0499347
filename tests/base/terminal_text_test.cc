#include "base/terminal_text.h"

#include <gtest/gtest.h>

#include <string_view>

namespace rematch {

TEST(TerminalText, ShowsControlCharactersByTheirNumbers) {
  EXPECT_EQ(printable("a\x1b[31mb\x7f\n"), "a\\x1b[31mb\\x7f\\x0a");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xC2\x9B"
                      "31m"),
            "\\x9b31m");
  EXPECT_EQ(printable("Schild \xC2\xA0é 猫"), "Schild \xC2\xA0é 猫");
}

TEST(TerminalText, KeepsTheEndsOfLinesInTextOfSeveral) {
  EXPECT_EQ(printable_lines("a\x1b[0m\n\n  b\tc\n"), "a\\x1b[0m\n\n  b\\x09c\n");
  EXPECT_EQ(printable_lines(""), "");
  EXPECT_EQ(printable_lines(printable_lines("\x07")), "\\x07");
}

TEST(TerminalText, ShowsWhatWouldTurnALineByItsNumber) {
  EXPECT_EQ(printable("a\u202Egnp\u2066\u2028b"), "a\\u202egnp\\u2066\\u2028b");
  EXPECT_EQ(printable("\u2013 \u2030 \xE2\x80"), "\u2013 \u2030 \xE2\x80");
}

TEST(TerminalText, CutsALongLabelBetweenCharacters) {
  std::string label;
  for (int i = 0; i < 60; ++i) label += "猫";
  EXPECT_EQ(shown_label(label), label);
  EXPECT_EQ(shown_label(label + "x"), label.substr(0, 59 * 3) + "…");
  EXPECT_EQ(shown_label("a\u202Eb"), "a\\u202eb");
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

TEST(Wrapped, BreaksAtBlanksAndKeepsCommandsWhole) {
  EXPECT_EQ(wrapped("  a bb ccc dddd", 4, 9), "  a bb\n    ccc\n    dddd");
  EXPECT_EQ(wrapped("run `a b c d`, then e", 2, 10), "run\n  `a b c d`,\n  then e");
}

TEST(WithFile, NamesTheFileWhereverAdviceDoes) {
  EXPECT_EQ(with_file("run `check FILE --fix OUT` or `show FILE`: FILES, iconv FILE", "a b.jsonl"),
            "run `check 'a b.jsonl' --fix OUT` or `show 'a b.jsonl'`: FILES, iconv 'a b.jsonl'");
}

TEST(ShownBytes, SmallSizesKeepTheirDigits) {
  EXPECT_EQ(shown_bytes(812), "812 B");
  EXPECT_EQ(shown_bytes(14'300), "14 KB");
  EXPECT_EQ(shown_bytes(1'440'000), "1.4 MB");
}

}  // namespace rematch
