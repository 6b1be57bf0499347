#include "base/observe/terminal.h"

#include <gtest/gtest.h>

#include <sstream>
#include <thread>

namespace rematch {
namespace {

struct Screen {
  std::ostringstream out;
  std::ostringstream err;
};

size_t count(const std::string& text, const std::string& part) {
  size_t found = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST(Terminal, WritesOccasionalPlainLinesWithoutATty) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = false});
  for (int step = 1; step <= 100; ++step)
    terminal.progress({.phase = "train",
                       .done = step,
                       .total = 100,
                       .fields = {{.name = "loss", .value = "1.5"}}});
  terminal.finish_progress();
  // The first state and the last; ten seconds lie between any others.
  EXPECT_EQ(count(screen.err.str(), "\n"), 2u) << screen.err.str();
  EXPECT_EQ(screen.err.str().rfind("train 1/100  loss 1.5  0:00", 0), 0u) << screen.err.str();
  EXPECT_NE(screen.err.str().find("train 100/100  loss 1.5"), std::string::npos);
  EXPECT_EQ(screen.err.str().find('\r'), std::string::npos);
  EXPECT_EQ(screen.out.str(), "");
}

TEST(Terminal, ShowsControlCharactersOfNamesByTheirNumbers) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = true, .use_color = true});
  const std::string name = "a\x1b]0;owned\x07.jpg";
  terminal.warn("cannot read " + name);
  terminal.say("saved " + name);
  terminal.print("row\n" + name);
  EXPECT_EQ(screen.err.str(),
            "\033[33mwarning:\033[0m cannot read a\\x1b]0;owned\\x07.jpg\n"
            "saved a\\x1b]0;owned\\x07.jpg\n");
  EXPECT_EQ(screen.out.str(), "row\na\\x1b]0;owned\\x07.jpg\n");
}

TEST(Terminal, ShowsEveryPlainStateWhenAskedTo) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = false, .plain_interval_s = 0});
  for (int step = 1; step <= 5; ++step)
    terminal.progress({.phase = "train", .done = step, .total = 100});
  EXPECT_EQ(count(screen.err.str(), "\n"), 5u);
}

TEST(Terminal, ShowsTheEndOfABarOnce) {
  for (const bool is_tty : {false, true}) {
    Screen screen;
    Terminal terminal(screen.out, screen.err, {.is_tty = is_tty});
    for (const int done : {1, 4, 4}) terminal.progress({.phase = "loss", .done = done, .total = 4});
    terminal.finish_progress();
    EXPECT_EQ(count(screen.err.str(), "4/4"), 1u) << screen.err.str();
    terminal.progress({.phase = "loss", .done = 4, .total = 4});
    EXPECT_EQ(count(screen.err.str(), "4/4"), 2u) << "another bar";
  }
}

TEST(Terminal, ShowsTheLastStateOfAnUnfinishedBar) {
  Screen screen;
  {
    Terminal terminal(screen.out, screen.err, {.is_tty = false});
    terminal.progress({.phase = "train", .done = 1, .total = 100});
    terminal.progress({.phase = "train", .done = 42, .total = 100});
  }
  EXPECT_NE(screen.err.str().find("train 42/100"), std::string::npos);
}

TEST(Terminal, RedrawsOneLineOnATty) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = true});
  for (int step = 1; step <= 1000; ++step)
    terminal.progress({.phase = "train", .done = step, .total = 1000});
  EXPECT_EQ(count(screen.err.str(), "\n"), 0u);
  EXPECT_LT(count(screen.err.str(), "\r"), 100u) << "at most ten redraws a second";
  terminal.finish_progress();
  const std::string shown = screen.err.str();
  EXPECT_NE(shown.find("train ▕████████████████████████▏ 1000/1000  0:0"), std::string::npos)
      << shown;
  EXPECT_EQ(shown.back(), '\n');
}

TEST(Terminal, NeverWritesALineWiderThanTheScreen) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = true, .width = 40});
  terminal.progress({.phase = "train",
                     .done = 1,
                     .total = 3,
                     .fields = {{.name = "a long field", .value = "1", .width = 100}}});
  EXPECT_EQ(screen.err.str(), "\r\033[Ktrain ▕█████          ▏ 1/3  0:00")
      << "a field that does not fit is left out whole";
  Screen narrow;
  Terminal(narrow.out, narrow.err, {.is_tty = true, .width = 10})
      .progress({.phase = "answers", .done = 1, .total = 3});
  EXPECT_EQ(narrow.err.str(), "\r\033[Kanswers 1\n");
}

TEST(Terminal, KeepsTheBarOfAPhaseWhenAnotherBegins) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = true});
  terminal.progress({.phase = "train", .done = 10, .total = 20});
  terminal.progress({.phase = "evaluate", .done = 1, .total = 5});
  terminal.finish_progress();
  terminal.progress({.phase = "train", .done = 11, .total = 20});
  const std::string shown = screen.err.str();
  EXPECT_EQ(count(shown, "\n"), 2u) << shown;
  EXPECT_LT(shown.find("train"), shown.find('\n'));
  EXPECT_NE(shown.find("train", shown.rfind('\n')), std::string::npos);
}

TEST(Terminal, WarnsOncePerText) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = false});
  terminal.warn("a");
  terminal.warn("b");
  terminal.warn("a");
  EXPECT_EQ(screen.err.str(), "warning: a\nwarning: b\n");
}

TEST(Terminal, WrapsWarningsAtTheWidthOfAScreen) {
  Screen screen;
  Terminal(screen.out, screen.err, {.is_tty = true, .width = 16}).warn("one two three");
  EXPECT_EQ(screen.err.str(), "warning: one two\n  three\n");
}

TEST(Terminal, UsesColoursOnlyOnATty) {
  Screen plain, coloured;
  Terminal(plain.out, plain.err, {.is_tty = false, .use_color = true}).warn("a");
  Terminal(coloured.out, coloured.err, {.is_tty = true, .use_color = true}).warn("a");
  EXPECT_EQ(plain.err.str(), "warning: a\n");
  EXPECT_EQ(coloured.err.str(), "\033[33mwarning:\033[0m a\n");
}

TEST(Terminal, ObeysNoColor) {
  ::setenv("NO_COLOR", "1", 1);
  testing::internal::CaptureStderr();
  Terminal::standard()->warn("plain");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: plain\n");
  ::unsetenv("NO_COLOR");
}

TEST(Terminal, WritesMessagesAboveTheBar) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = true});
  terminal.progress({.phase = "train", .done = 1, .total = 2});
  terminal.say("saved checkpoint-1");
  const std::string shown = screen.err.str();
  const size_t message = shown.find("\r\033[Ksaved checkpoint-1\n");
  ASSERT_NE(message, std::string::npos) << shown;
  EXPECT_NE(shown.find("train ▕", message), std::string::npos) << "the bar is drawn again";
}

TEST(Terminal, PrintsTablesWithNumbersUnderTheirHeaders) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {});
  terminal.table({{"metric", "before", "after"},
                  {"F1 at IoU 0.5", "0.351", "0.48"},
                  {"größe", "-1", "n/a"},
                  {"recall", "0.5*", "0.4"}});
  EXPECT_EQ(screen.out.str(),
            "metric         before  after\n"
            "----------------------------\n"
            "F1 at IoU 0.5   0.351   0.48\n"
            "größe              -1  n/a\n"
            "recall           0.5*    0.4\n");
  EXPECT_EQ(screen.err.str(), "");
}

TEST(Terminal, SurvivesAnEmptyTotal) {
  Screen screen;
  Terminal terminal(screen.out, screen.err, {.is_tty = true});
  terminal.progress({.phase = "evaluate", .done = 0, .total = 0});
  terminal.finish_progress();
  EXPECT_NE(screen.err.str().find("0/0  0:00"), std::string::npos) << screen.err.str();
}

TEST(Terminal, KeepsLinesWholeAcrossThreads) {
  Screen screen;
  {
    Terminal terminal(screen.err, screen.err, {.is_tty = false});
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int line = 0; line < 200; ++line) terminal.say("0123456789");
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_EQ(count(screen.err.str(), "0123456789\n"), 800u);
  EXPECT_EQ(screen.err.str().size(), 800u * 11);
}

}  // namespace rematch
