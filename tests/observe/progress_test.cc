#include "base/observe/progress.h"

#include <gtest/gtest.h>

#include "base/observe/columns.h"

namespace rematch {
namespace {

/// A training with everything that it can show.
/// @param loss  empty = not known yet
Progress training(int64_t done, int64_t total, const std::string& loss) {
  return {.phase = "train",
          .done = done,
          .total = total,
          .fields = {{.name = "loss", .value = loss},
                     {.name = "F1", .value = loss.empty() ? "" : ".40", .width = 3},
                     {.name = "label F1", .value = ".32", .width = 3, .is_extra = true},
                     {.name = "s/step", .value = "0.17", .is_unit = true},
                     {.name = "tok/s", .value = "1078", .is_unit = true, .is_extra = true},
                     {.name = "RAM", .value = "21.4 GiB", .width = 9, .is_extra = true},
                     {.name = "lr", .value = "1e-05", .is_extra = true}}};
}

/// Columns before the first occurrence of a text.
size_t column_of(const std::string& line, const std::string& text) {
  return display_width(line.substr(0, line.find(text)));
}

}  // namespace

TEST(ProgressLayout, FitsATrainingIntoEightyColumns) {
  const ProgressLayout layout(training(1, 24, ""), 79, false);
  EXPECT_EQ(layout.line(training(12, 24, "4.33"), 4, 4),
            "train ▕█████████▌         ▏ 12/24  loss 4.33   F1 .40   0.17 s/step  0:04 left");
  const ProgressLayout long_run(training(1, 123456, ""), 79, false);
  const std::string line = long_run.line(training(123455, 123456, "1e-05"), 400000, 400000);
  EXPECT_EQ(line, "train ▕██████████▉▏ 123455/123456  loss 1e-05  F1 .40   0.17 s/step  99h59 left")
      << "the fields of every training fit";
  EXPECT_LE(display_width(line), 79u);
}

TEST(ProgressLayout, ShowsMoreOnlyOnAWiderScreen) {
  const auto line = [](size_t width) {
    return ProgressLayout(training(1, 24, ""), width, false).line(training(12, 24, "4.33"), 4, 4);
  };
  EXPECT_EQ(
      line(119),
      "train ▕████████▌        ▏ 12/24  loss 4.33   F1 .40  label F1 .32   0.17 s/step   1078 "
      "tok/s  RAM 21.4 GiB   0:04 left");
  EXPECT_EQ(line(200).find("lr 1e-05") != std::string::npos, true);
  EXPECT_EQ(line(79).find("tok/s"), std::string::npos);
}

TEST(ProgressLayout, NeverMovesBetweenTwoStates) {
  for (const size_t width : {79, 99, 119, 160}) {
    const ProgressLayout layout(training(1, 2000, ""), width, false);
    const std::string first = layout.line(training(1, 2000, ""), 0, -1),
                      later = layout.line(training(1999, 2000, "12345"), 3000, 0.2);
    for (const char* mark : {"▕", "▏ ", "/2000", "loss", "F1", "s/step"})
      EXPECT_EQ(column_of(first, mark), column_of(later, mark)) << width << mark;
    EXPECT_LE(display_width(later), width);
  }
}

TEST(ProgressLayout, DrawsInAsciiWhereTheLocaleWantsIt) {
  const Progress state{.phase = "answers", .done = 1, .total = 4, .fields = {}};
  EXPECT_EQ(ProgressLayout(state, 79, true).line(state, 1, 3),
            "answers [######..................] 1/4  0:03 left");
}

TEST(PlainProgress, SaysEverythingThatIsKnown) {
  EXPECT_EQ(
      plain_progress(training(2, 24, "4.33"), 65, 715),
      "train 2/24  loss 4.33  F1 .40  label F1 .32  0.17 s/step  1078 tok/s  RAM 21.4 GiB  lr "
      "1e-05  1:05, 11:55 left");
  EXPECT_EQ(
      plain_progress({.phase = "train", .done = 0, .total = 2, .fields = {{.name = "F1"}}}, 0, -1),
      "train 0/2  0:00");
}

}  // namespace rematch
