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
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += record(box("1, 1, 800, 900"));
  const std::string path = write(lines + record(box("500, 0, 10, 999")) +
                                 record(box("5, 5, 5, 900") + ", " + box("1, 1, 800, 900")) +
                                 record(box("1, 1, 800, 900") + ", " + box("1, 1, 800, 900")) +
                                 record("", "gone.png") + record("", "a.png", 201) + "{]\n");
  const std::string out = directory_.file("fixed/data.jsonl");
  const RepairedRecords repaired = write_repaired(path, out, {});
  const Review review = review_jsonl(out, true);
  EXPECT_EQ(review.num_records, 23);
  for (const FindingKind kind :
       {FindingKind::kRefused, FindingKind::kUnreadableImage, FindingKind::kWrongSize,
        FindingKind::kInverted, FindingKind::kNoArea, FindingKind::kRepeatedObject})
    EXPECT_TRUE(review.of(kind).empty()) << finding_name(kind);
  EXPECT_EQ(repaired.changes.at("boxes with swapped corners, put in order"), 1);
  EXPECT_EQ(repaired.losses.at("an image that was not found"), 1);
  EXPECT_EQ(repaired.unit, CoordinateUnit::kBins);
}

TEST_F(RepairTest, BoxesOfWidthAndHeightAreConvertedUnderAnyKeyWhereTheNumbersProveThem) {
  for (const char* key : {"bbox_2d", "bbox", "box"}) {
    const std::string lines =
        large(box("400, 300, 50, 60", key)) + large(box("10, 20, 300, 400", key));
    const Review review = review_jsonl(write(lines), false);
    ASSERT_TRUE(review.form_doubt) << key;
    EXPECT_NE(review.form_doubt->why.find("they fit x, y, width, height"), std::string::npos);
    const UserError error = test::catch_user_error([&] { repair(lines); });
    EXPECT_EQ(error.kind(), ErrorKind::kConfig);
    EXPECT_NE(error.problems()[0].fix.find("x + width"), std::string::npos);
    std::string many;
    for (int i = 0; i < 15; ++i) many += lines;
    repair(many, {.unit = CoordinateUnit::kBins});
    EXPECT_EQ(fixed_boxes().substr(0, 40), "[400, 300, 450, 360]\n[10, 20, 310, 420]\n") << key;
    repair(many, {.unit = CoordinateUnit::kPixels});
    EXPECT_EQ(fixed_boxes().substr(0, 40), "[625, 625, 703, 750]\n[16, 42, 484, 875]\n") << key;
  }
}

TEST_F(RepairTest, ManySwappedCornersArePutInOrderWhereNoWidthFits) {
  std::string lines;
  for (int i = 0; i < 15; ++i)
    lines += large(box("900, 800, 300, 500")) + large(box("10, 20, 995, 990"));
  EXPECT_EQ(repair(lines).at("boxes with swapped corners, put in order"), 15);
}

TEST_F(RepairTest, RecordsOfOneImageAreJoined) {
  const std::string cat = box("1, 2, 30, 40"), dog = box("500, 500, 900, 900"),
                    prompted = record(box("7, 7, 50, 999"), "a.png");
  const std::string lines = record(cat, "a.png") + record(dog, "a.png") + record(cat) +
                            record(cat, "a.png") + "{\"prompt\": \"Find dogs.\", " +
                            prompted.substr(1);
  EXPECT_EQ(review_jsonl(write(lines), false).split_images.num_records, 3);
  const Changes changes = repair(lines);
  EXPECT_EQ(changes.at("records joined with an earlier one of their image"), 2);
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40][500, 500, 900, 900]\n[1, 2, 30, 40]\n[7, 7, 50, 999]\n");
}

TEST_F(RepairTest, NumbersOfUnknownUnitInRecordsWithoutASizeNeedTheOption) {
  const std::string lines = R"({"images": ["a.png"], "objects": [)" + box("1, 2, 30, 40") + "]}\n";
  const UserError error = test::catch_user_error([&] { repair(lines); });
  EXPECT_NE(error.problems()[0].error.find("cannot be told"), std::string::npos) << error.what();
  EXPECT_NE(error.problems()[0].fix.find("--unit pixels"), std::string::npos);
  repair(lines, {.unit = CoordinateUnit::kPixels});
  EXPECT_EQ(fixed_boxes(), "[5, 20, 150, 400]\n");
  repair(record(box("1, 2, 30, 40")) + lines + record(box("1, 2, 300, 400")));
  EXPECT_EQ(fixed_boxes().substr(0, 15), "[1, 2, 30, 40]\n") << "300 leaves the image: bins";
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
  repair(lines, {.unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40]\n[1, 2, 30, 40]\n[1, 2, 30, 40]\n");
}

TEST_F(RepairTest, AnObjectWithTwoNamesOrTwoShapesIsLeftOut) {
  const std::string whole = box("1, 2, 30, 40"), open = whole.substr(0, whole.size() - 1);
  const Changes repairs = repair(record(whole) + record(open + R"(, "label": "another"})") +
                                     record(open + R"(, "bbox": [1, 2, 30, 41]})") +
                                     record(open + R"(, "bbox": [1, 2, 30, 40]})"),
                                 {.unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40]\n[1, 2, 30, 40]\n");
  EXPECT_EQ(repairs.at("a record with two names or two shapes of an object"), 2);
}

TEST_F(RepairTest, ARecordWhoseBoxesHaveNoAreaIsNoEmptyScene) {
  const Changes repairs =
      repair(record(box("300, 400, 300, 500")) + record(box("1, 2, 30, 40")) + record(""),
             {.unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40]\n\n");
  EXPECT_EQ(repairs.at("a box without area"), 1);
}

TEST_F(RepairTest, CentresOfOddWidthsBecomeWholeBins) {
  std::string lines;
  for (int i = 0; i < 15; ++i)
    lines += large(box("150, 250, 101, 51")) + large(box("700, 600, 599, 599"));
  repair(lines);
  EXPECT_EQ(fixed_boxes().substr(0, 21), "[100, 225, 201, 276]\n");
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

TEST_F(RepairTest, MetadataAndThePromptAreKeptAndUnknownMembersAreNotLostInSilence) {
  const std::string cat = box("1, 2, 30, 40"), turned = "{\"angle\": 30, " + cat.substr(1);
  const Changes repairs = repair(R"({"metadata": {"id": 7}, "prompt": "Find cats.", )" +
                                 record(cat, "a.png").substr(1) + record(turned));
  EXPECT_EQ(repairs.at("a record with an unknown member in an object"), 1);
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40]\n");
  const std::string line = read_file(directory_.file("fixed.jsonl"));
  EXPECT_NE(line.find(R"("metadata": {"id": 7})"), std::string::npos) << line;
  EXPECT_NE(line.find(R"("prompt": "Find cats.")"), std::string::npos) << line;
}

TEST_F(RepairTest, FractionsOfBinsAreRoundedWhereTheOptionSaysSo) {
  const std::string lines = large(box("10.4, 20.5, 999.7, 1000")) + large(box("1, 2, 30, 40"));
  const Changes repairs = repair(lines, {.unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[10, 21, 999, 999]\n[1, 2, 30, 40]\n");
  EXPECT_EQ(repairs.at("fractions of bins rounded"), 3);
  const UserError error =
      test::catch_user_error([&] { repair(large(box("10.4, 20.5, 999.7, 900"))); });
  EXPECT_NE(error.problems()[0].fix.find("--unit bins"), std::string::npos) << error.what();
}

}  // namespace rematch
