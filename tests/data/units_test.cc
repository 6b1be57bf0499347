// The meaning of the numbers of boxes, by the one table of evidence.
#include "learn/data/units.h"

#include <gtest/gtest.h>

namespace rematch {
namespace {

constexpr CoordinateUnit kBins = CoordinateUnit::kBins, kPixels = CoordinateUnit::kPixels,
                         kShares = CoordinateUnit::kShares;

/// Boxes, each alone in an image of 640 x 480, so many times.
UnitEvidence repeat(const std::vector<Numbers>& boxes, int times = 1) {
  UnitEvidence evidence;
  for (int i = 0; i < times; ++i) {
    for (const Numbers& box : boxes) evidence.add({box}, 640, 480);
  }
  return evidence;
}

/// "pixels", with "?" where it is not sure; "" for no doubt.
std::string doubt(const UnitEvidence& evidence, CoordinateUnit read_as = kBins) {
  const auto found = doubt_unit(evidence, read_as);
  return found ? std::string(name_of(found->unit)) + (found->is_sure ? "" : "?") : "";
}

std::string form_doubt(const UnitEvidence& evidence) {
  const auto found = doubt_form(evidence, std::nullopt, BoxForm::kCorners);
  if (!found) return "";
  std::string forms;
  for (const BoxForm form : found->fitting) forms += box_form_name(form) + std::string(" ");
  return forms + (found->is_sure ? "surely" : "perhaps");
}

}  // namespace

TEST(Units, NumbersThatAreBinsAreNotDoubted) {
  EXPECT_EQ(doubt(repeat({{0, 0, 700, 999}, {5, 5, 10, 10}}, 30)), "");
  EXPECT_EQ(doubt(repeat({{0, 0, 1, 1}}, 30)), "pixels") << "none leaves its image";
  EXPECT_EQ(doubt(repeat({{100, 100, 300, 300}}, 7)), "") << "too few to be unlikely";
}

TEST(Units, EachRowOfTheTableNamesItsUnit) {
  EXPECT_EQ(doubt(repeat({{0.1, 0.2, 0.5, 1}, {0, 0, 1, 1}}, 15)), "normalized");
  EXPECT_EQ(doubt(repeat({{0.1, 0.2, 0.5, 1}})), "normalized?");
  EXPECT_EQ(doubt(repeat({{10.5, 20, 600, 470}}, 30)), "pixels");
  EXPECT_EQ(doubt(repeat({{100, 100, 300, 300}}, 8)), "pixels?");
  EXPECT_EQ(doubt(repeat({{10.5, 20, 700, 900}}, 30)), "bins?") << "rounding is for the user";
  EXPECT_EQ(doubt(repeat({{10.5, 20, 700, 1100}}, 30)), "") << "no unit holds them";
  UnitEvidence large;
  large.add({{10, 20, 1500, 900}}, 1920, 1080);
  EXPECT_EQ(doubt(large), "pixels?");
}

TEST(Units, SharesAmongOtherNumbersAreCountedAlone) {
  const UnitEvidence mixed = repeat({{0.1, 0.2, 0.5, 1}, {0, 0, 700, 999}}, 30);
  EXPECT_EQ(mixed.num_shares, 30);
  EXPECT_EQ(doubt(mixed), "");
}

TEST(Units, PixelsAreOnlyDoubtedWhereAllAreShares) {
  EXPECT_EQ(doubt(repeat({{0, 0, 1, 1}}), kPixels), "normalized?");
  EXPECT_EQ(doubt(repeat({{0.1, 0.1, 5, 9}}), kPixels), "");
  EXPECT_EQ(doubt(repeat({{0.1, 0.1, 0.5, 0.9}}), kShares), "");
}

TEST(Units, AFormIsSureWhenNoOtherFits) {
  const std::vector<Numbers> sides = {{500, 300, 90, 60}, {10, 20, 400, 400}};
  EXPECT_EQ(form_doubt(repeat(sides)), "xywh perhaps");
  EXPECT_EQ(form_doubt(repeat(sides, 15)), "xywh surely");
  EXPECT_EQ(form_doubt(repeat({{500, 300, 90, 60}}, 30)), "xywh cxcywh perhaps");
  EXPECT_EQ(form_doubt(repeat({{900, 300, 80, 60}, {500, 500, 990, 390}}, 15)), "cxcywh surely");
}

TEST(Units, CornersInAnyOrderAreSureWhereWidthsLeaveTheImage) {
  EXPECT_EQ(form_doubt(repeat({{900, 800, 300, 500}, {10, 20, 995, 990}}, 15)), "xyxy surely");
  EXPECT_EQ(form_doubt(repeat({{1, 2, 300, 400}}, 30)), "") << "nothing is swapped";
}

TEST(Units, WidthsThatFitOnlyOneOfTwoUnitsProveNothing) {
  // 500 + 300 is inside as bins, outside as pixels
  EXPECT_EQ(form_doubt(repeat({{500, 100, 300, 90}, {20, 10, 400, 300}}, 15)), "perhaps");
}

TEST(Units, SidesThatLeaveTheirImageMayBeCorners) {
  const UnitEvidence corners = repeat({{400, 300, 600, 460}, {100, 100, 600, 200}});
  const auto found = doubt_form(corners, kPixels, BoxForm::kSides);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->fitting, std::vector<BoxForm>{BoxForm::kCorners});
  EXPECT_FALSE(doubt_form(repeat({{400, 300, 200, 160}}), kPixels, BoxForm::kSides));
}

}  // namespace rematch
