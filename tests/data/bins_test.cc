// The one convention of a bin: what is written for it, and what is read as it (BEHAVIOUR 19.3).
#include "base/flow/bins.h"

#include <gtest/gtest.h>

#include <cmath>

namespace rematch {
namespace {

constexpr NumberScale kThousandths{};

NumberScale pixels(int side) { return {.x = side, .y = side, .in_pixels = true}; }

}  // namespace

TEST(Bins, AreTheNearestThousandthAndNeverBeyondTheLast) {
  EXPECT_EQ(to_bin(0, 640), 0);
  EXPECT_EQ(to_bin(320, 640), 500);
  EXPECT_EQ(to_bin(640, 640), 999);
  EXPECT_EQ(to_bin(-3, 640), 0);
  EXPECT_EQ(to_bin(1, 640), 2);  // 1.5625
  for (int bin = 0; bin < kNumBins; ++bin) EXPECT_EQ(to_bin(place_of(bin, 640), 640), bin);
}

TEST(Bins, SurviveTheirTextInThousandths) {
  for (int bin = 0; bin < kNumBins; ++bin) {
    const int number = kThousandths.number(bin, 0);
    EXPECT_EQ(number, bin < 500 ? bin : bin + 1);
    EXPECT_EQ(kThousandths.bin(number, 0), bin);
  }
  EXPECT_EQ(kThousandths.bin(500, 0), 500) << "the only number that is never written";
}

TEST(Bins, SurviveTheirTextInPixelsOfSidesOfAThousandAndMore) {
  for (const int side : {1000, 1001, 1008, 1376, 1380, 1999, 2000, 4096, 16384}) {
    for (int bin = 0; bin < kNumBins; ++bin)
      EXPECT_EQ(pixels(side).bin(pixels(side).number(bin, 1), 1), bin) << side;
  }
}

TEST(Bins, ReachBothEdgesOfAnImageInEveryText) {
  for (const int side : {1, 28, 640, 1000, 1380, 4096}) {
    EXPECT_EQ(pixels(side).number(0, 0), 0);
    EXPECT_EQ(pixels(side).number(999, 0), side);
    EXPECT_EQ(pixels(side).bin(side, 0), 999);
  }
  EXPECT_EQ(kThousandths.number(999, 0), 1000);
  EXPECT_EQ(kThousandths.bin(1000, 0), 999);
}

TEST(Bins, KeepPixelsWithinHalfABinAndTheRoundingToPixels) {
  for (const int side : {640, 1380, 3000}) {
    const double half_bin = side / 2000.0;
    for (int pixel = 0; pixel < side * 0.9985; ++pixel) {
      const int again = pixels(side).number(to_bin(pixel, side), 0);
      EXPECT_LE(std::abs(again - pixel), half_bin + 0.5) << pixel << " of " << side;
    }
    EXPECT_EQ(pixels(side).number(to_bin(side, side), 0), side);
  }
}

TEST(Bins, TheWideStripComesBack) {
  const int before[] = {60, 260, 400, 600, 740, 940, 1090, 1290, 1380};
  for (const int pixel : before)
    EXPECT_LE(std::abs(pixels(1380).number(to_bin(pixel, 1380), 0) - pixel), 1) << pixel;
}

TEST(Bins, HaveAScaleForEachAxis) {
  const NumberScale wide{.x = 2000, .y = 100, .in_pixels = true};
  EXPECT_EQ(wide.number(500, 0), 1000);
  EXPECT_EQ(wide.number(500, 1), 50);
  EXPECT_EQ(wide.bin(1000, 2), 500);
  EXPECT_EQ(wide.bin(50, 3), 500);
}

}  // namespace rematch
