// The copy that `rematch data check --fix` writes.
#include <gtest/gtest.h>

#include "base/error.h"
#include "base/file.h"
#include "review/review_dir.h"
#include "support/capture.h"

namespace rematch {
namespace {

class RepairTest : public test::ReviewDir {};

}  // namespace

TEST_F(RepairTest, TheRepairedCopyHasNothingToRefuse) {
  const std::string path = write(record(box("500, 0, 10, 999")) +
                                 record(box("5, 5, 5, 900") + ", " + box("1, 1, 800, 900")) +
                                 record(box("1, 1, 800, 900") + ", " + box("1, 1, 800, 900")) +
                                 record("", "gone.png") + record("", "a.png", 201) + "{]\n");
  const std::string out = directory_.file("fixed/data.jsonl");
  const Repairs repairs = write_repaired(path, out, {.boxes = BoxForm::kCorners}).repairs;
  const Review review = review_jsonl(out, true);
  EXPECT_EQ(review.num_records, 3);
  for (const FindingKind kind :
       {FindingKind::kRefused, FindingKind::kUnreadableImage, FindingKind::kWrongSize,
        FindingKind::kInverted, FindingKind::kNoArea, FindingKind::kRepeatedObject})
    EXPECT_TRUE(review.of(kind).empty()) << finding_name(kind);
  EXPECT_EQ(repairs.at("boxes with swapped corners, put in order"), 1);
  EXPECT_EQ(repairs.at("left out: records without a usable image"), 1);
}

TEST_F(RepairTest, BoxesOfWidthAndHeightAreRecognisedUnderAnyKeyAndNeverGuessed) {
  for (const char* key : {"bbox_2d", "bbox", "box"}) {
    const std::string lines =
        large(box("400, 300, 50, 60", key)) + large(box("10, 20, 300, 400", key));
    const Review review = review_jsonl(write(lines), false);
    EXPECT_TRUE(review.box_forms.is_suspicious()) << key;
    EXPECT_NE(review.box_forms.verdict().find("x, y, width, height"), std::string::npos);
    const UserError error = test::catch_user_error([&] { repair(lines); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.problems()[0].fix.find("--boxes xywh"), std::string::npos);
    repair(lines, {.boxes = BoxForm::kSides, .unit = CoordinateUnit::kBins});
    EXPECT_EQ(fixed_boxes(), "[400, 300, 450, 360]\n[10, 20, 310, 420]\n") << key;
    repair(lines, {.boxes = BoxForm::kSides, .unit = CoordinateUnit::kPixels});
    EXPECT_EQ(fixed_boxes(), "[625, 625, 703, 750]\n[16, 42, 484, 875]\n") << key;
  }
}

TEST_F(RepairTest, AFewSwappedCornersArePutInOrder) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += large(box("100, 200, 300, 900"));
  lines += large(box("300, 200, 100, 900"));
  EXPECT_EQ(repair(lines).at("boxes with swapped corners, put in order"), 1);
}

TEST_F(RepairTest, QuotedNumbersPairsAndASinglePathAreRepaired) {
  const std::string lines = R"({"images": "a.png", "width": 200, "height": 100, "objects": [)" +
                            box("1, 2, 30, 40") + "]}\n" + R"({"image": "a.png", "objects": [)" +
                            box("\"1\", \"2\", \"30\", \"40\"") + "]}\n" +
                            record(box("[1, 2], [30, 40]"));
  const Repairs repairs = repair(lines, {.unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40]\n[1, 2, 30, 40]\n[1, 2, 30, 40]\n");
  EXPECT_EQ(repairs.at("boxes of two pairs, written as four numbers"), 1);
  EXPECT_EQ(repairs.at("geometries with numbers in quotes"), 1);
  EXPECT_EQ(repairs.at("one path in place of a list of images"), 1);
}

TEST_F(RepairTest, ARecordWhoseBoxesHaveNoAreaIsNoEmptyScene) {
  const Repairs repairs =
      repair(record(box("300, 400, 300, 500")) + record(box("1, 2, 30, 40")) + record(""),
             {.unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40]\n\n");
  EXPECT_EQ(repairs.at("left out: records with a box without area"), 1);
}

TEST_F(RepairTest, CentresOfOddWidthsBecomeWholeBins) {
  repair(record(box("150, 250, 101, 51")),
         {.boxes = BoxForm::kCentre, .unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[100, 225, 201, 276]\n");
}

TEST_F(RepairTest, FewObjectsDoNotDecideTheUnit) {
  const std::string pixels = large(box("64, 48, 320.5, 240"));
  const UserError error = test::catch_user_error([&] { repair(pixels); });
  EXPECT_NE(error.problems()[0].fix.find("--unit pixels"), std::string::npos);
  repair(pixels, {.unit = CoordinateUnit::kPixels});
  EXPECT_EQ(fixed_boxes(), "[100, 100, 501, 500]\n");
  repair(large(box("0.1, 0.2, 0.5, 1")), {.unit = CoordinateUnit::kShares});
  EXPECT_EQ(fixed_boxes(), "[100, 200, 500, 999]\n");
  std::string many;
  for (int i = 0; i < 30; ++i) many += pixels;
  EXPECT_EQ(repair(many).at("records converted from pixels to bins"), 30);
}

TEST_F(RepairTest, FractionsOfBinsAreRoundedWhereTheOptionSaysSo) {
  const std::string lines = large(box("10.4, 20.5, 999.7, 1000")) + large(box("1, 2, 30, 40"));
  const Repairs repairs = repair(lines, {.unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[10, 21, 999, 999]\n[1, 2, 30, 40]\n");
  EXPECT_EQ(repairs.at("fractions of bins rounded"), 3);
  const UserError error =
      test::catch_user_error([&] { repair(large(box("10.4, 20.5, 999.7, 900"))); });
  EXPECT_NE(error.problems()[0].fix.find("--unit bins"), std::string::npos) << error.what();
}

TEST_F(RepairTest, StrictWritesNothingWhereSomethingIsLost) {
  const std::string good = record(box("1, 2, 30, 40")), doubled = box("5, 5, 800, 900");
  const RepairOptions strict{.unit = CoordinateUnit::kBins, .strict = true};
  repair(good + record(doubled + ", " + doubled), strict);
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40]\n[5, 5, 800, 900]\n") << "a repeat is not a loss";
  for (const std::string& lost :
       {record("", "gone.png"), record(doubled + ", " + box("5, 5, 5, 9"))}) {
    const UserError error = test::catch_user_error([&] { repair(good + lost, strict); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(error.problems()[0].error.find("--strict"), std::string::npos);
  }
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40]\n[5, 5, 800, 900]\n") << "the earlier copy stays";
}

}  // namespace rematch
