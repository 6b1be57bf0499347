#include "learn/pack/stream_packing.h"

#include <gtest/gtest.h>

#include <set>

#include "base/interrupt.h"
#include "learn/data/windows.h"

namespace rematch {
namespace {

constexpr int64_t kNumSamples = 50;

int len_of(int64_t sample_idx, int64_t epoch) {
  return static_cast<int>(10 + sample_idx * 7 % 23 + epoch * (sample_idx % 2));
}

}  // namespace

TEST(StreamPacking, MeasuresEverySampleOnceWhenLengthsStay) {
  int64_t num_measured = 0;
  const auto encoded_len = [&](int64_t sample_idx, int64_t) {
    ++num_measured;
    return len_of(sample_idx, 0);
  };
  StreamPacking packing({.num_samples = kNumSamples, .encoded_len = encoded_len},
                        {.packing_length = 100});
  EXPECT_EQ(num_measured, kNumSamples);
  WindowStream windows({.num_samples = kNumSamples, .cut = packing.cut()});
  for (int i = 0; i < 40; ++i) windows.next();
  EXPECT_EQ(num_measured, kNumSamples);
  EXPECT_NE(packing.start_text().find("50 samples"), std::string::npos) << packing.start_text();
}

TEST(StreamPacking, RowsHoldTheLengthsOfTheirOwnEpoch) {
  StreamPacking packing(
      {.num_samples = kNumSamples, .encoded_len = len_of, .vary_by_epoch = true},
      {.pack = {.drop_last = false, .selector = PackingSelector::kOptimal}, .packing_length = 64});
  WindowStream windows({.num_samples = kNumSamples, .cut = packing.cut()});
  windows.windows_in_epoch(3);
  int64_t full_rows = 0;
  for (WindowPlan plan = windows.next(); plan.epoch < 4; plan = windows.next()) {
    for (const auto& row : plan.micro_batches) {
      int total = 0;
      for (const int64_t sample_idx : row) total += len_of(sample_idx, plan.epoch);
      EXPECT_LE(total, 64);
      full_rows += total == 64 ? 1 : 0;
    }
  }
  EXPECT_GT(full_rows, 10);  // only the true lengths can fill a row exactly
}

TEST(StreamPacking, CountsWhatFinishedEpochsDropped) {
  // Nine samples of 4 in rows of 10: four rows of two, and one of a single sample that is dropped.
  StreamPacking packing({.num_samples = 9, .encoded_len = [](int64_t, int64_t) { return 4; }},
                        {.packing_length = 10});
  WindowStream windows({.num_samples = 9, .cut = packing.cut()});
  EXPECT_EQ(windows.windows_in_epoch(0), 4);
  EXPECT_EQ(windows.windows_in_epoch(1), 4);
  EXPECT_EQ(packing.num_dropped_samples(0), 0);
  EXPECT_EQ(packing.summary_text(0), "");
  EXPECT_EQ(packing.num_dropped_samples(1), 1);
  EXPECT_EQ(packing.num_dropped_samples(2), 2);
  EXPECT_EQ(packing.num_dropped_samples(5), 2);
  EXPECT_NE(packing.summary_text(2).find("2 samples of 2 epochs"), std::string::npos);
}

TEST(StreamPacking, TheFingerprintChangesWithEverythingThatChangesTheRows) {
  const auto print_of = [](StreamOptions options, int more, bool vary_by_epoch) {
    const auto encoded_len = [more](int64_t sample_idx, int64_t) {
      return len_of(sample_idx, 0) + (sample_idx == 7 ? more : 0);
    };
    const StreamSamples samples{
        .num_samples = kNumSamples, .encoded_len = encoded_len, .vary_by_epoch = vary_by_epoch};
    return StreamPacking(samples, options).fingerprint();
  };
  const StreamOptions base{.packing_length = 100};
  StreamOptions selector = base, buffer = base, min_fill = base, drop_last = base;
  selector.pack.selector = PackingSelector::kOptimal;
  buffer.pack.buffer = 7;
  min_fill.pack.min_fill_ratio = 0.7;
  drop_last.pack.drop_last = false;
  EXPECT_EQ(print_of(base, 0, false), print_of(base, 0, false));
  const std::set<std::string> prints{print_of(base, 0, false),     print_of(base, 1, false),
                                     print_of(base, 0, true),      print_of(selector, 0, false),
                                     print_of(buffer, 0, false),   print_of(min_fill, 0, false),
                                     print_of(drop_last, 0, false)};
  EXPECT_EQ(prints.size(), 7u);
}

TEST(StreamPacking, AnInterruptEndsTheMeasuring) {
  set_interrupt_requested(true);
  EXPECT_THROW(StreamPacking({.num_samples = 3, .encoded_len = len_of}, {.packing_length = 100}),
               Interrupted);
  set_interrupt_requested(false);
}

}  // namespace rematch
