// Lost truth never becomes absence: what cannot be read leaves out its record, counted by reason.
#include <cmath>
#include <filesystem>

#include "import/import_dir.h"

namespace rematch {
namespace {

class LossesTest : public test::ImportDir {
 protected:
  LossesTest() { write_image("a.png"); }
  ForeignImage image(std::vector<ForeignObject> objects, const std::string& name = "a.png") const {
    return {.name = name, .directory = dir_.path(), .where = name, .objects = std::move(objects)};
  }
  WrittenSet convert(std::vector<ForeignImage> images, const ImportOptions& options = {}) const {
    return convert_set({.splits = {{"train", std::move(images)}}, .repeats_images = true}, options);
  }
};

ForeignObject box(double x0, double y0, double x1, double y1, const std::string& name = "a") {
  return {.desc = name, .x0 = x0, .y0 = y0, .x1 = x1, .y1 = y1};
}

}  // namespace

TEST_F(LossesTest, ARecordIsLeftOutForEachReason) {
  const ForeignImage good = image({box(1, 1, 50, 50)});
  const std::vector<std::pair<ForeignObject, const char*>> cases = {
      {box(std::nan(""), 1, 50, 50), reason::kNoBox},
      {box(50, 1, 1, 50), reason::kSwapped},
      {box(300, 1, 350, 50), reason::kOutside},
      {box(30, 1, 30, 50), reason::kNoArea},
      {box(1, 1, 50, 50, ""), reason::kNoName},
      {box(1, 1, 50, 50, " \b"), reason::kBadName},
      {box(1, 1, 50, 50, "caf\xE9"), reason::kBadName},
      {box(1, 1, 50, 50, "<|im_end|>"), reason::kAddedToken}};
  for (const auto& [object, reason] : cases) {
    const WrittenSet written = convert({good, image({box(2, 2, 60, 60), object})});
    EXPECT_EQ(test::records_lost(written, reason), 1) << reason;
    EXPECT_EQ(this->written("train").size(), 1) << reason;
    EXPECT_EQ(test::problem_of([&] { convert({image({object})}); }).error,
              "no record of this split can be used")
        << reason;
  }
}

TEST_F(LossesTest, OnlyAnEmptyListIsAnEmptyScene) {
  const WrittenSet written = convert({image({}), image({box(50, 1, 1, 50)})});
  ASSERT_EQ(this->written("train").size(), 1);
  EXPECT_TRUE(this->written("train").samples()[0].objects.empty());
  EXPECT_EQ(test::records_lost(written, reason::kSwapped), 1);
}

TEST_F(LossesTest, TheSummaryBeginsWithWhatWasLost) {
  const WrittenSet written =
      convert({image({box(1, 1, 50, 50)}), image({box(50, 1, 1, 50)}), image({}, "gone.png")});
  EXPECT_EQ(
      written.ledger.summary(written.num_records()),
      "left out 2 of 3 records: 1 × a box with swapped corners or a negative width or height, "
      "1 × an image that was not found");
  EXPECT_EQ(written.ledger.places().size(), 2u);
}

TEST_F(LossesTest, UnreadableObjectsAreDroppedWhenAsked) {
  const ImportOptions drop{.drop_unreadable = true};
  const WrittenSet written =
      convert({image({box(1, 1, 50, 50), box(50, 1, 1, 50)}), image({box(50, 1, 1, 50)})}, drop);
  EXPECT_EQ(bins().size(), 1u);
  EXPECT_EQ(this->written("train").size(), 1) << "a record of which nothing is left stays out";
  EXPECT_EQ(test::objects_lost(written, reason::kSwapped), 1);
  EXPECT_EQ(test::records_lost(written, reason::kSwapped), 1);
}

TEST_F(LossesTest, StrictWritesNothingWhenSomethingIsLost) {
  const UserError error = test::catch_user_error(
      [&] { convert({image({box(1, 1, 50, 50)}), image({box(50, 1, 1, 50)})}, {.strict = true}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_FALSE(std::filesystem::exists(out()));
  convert({image({box(1, 1, 50, 50)})}, {.strict = true});
  EXPECT_EQ(this->written("train").size(), 1);
}

TEST_F(LossesTest, ALabelNamesWhatHasNone) {
  convert({image({box(1, 1, 50, 50, ""), box(2, 2, 50, 60, "dog")})}, {.label = "cat"});
  const Sample sample = written("train").samples()[0];
  EXPECT_EQ(sample.objects[0].desc, "cat");
  EXPECT_EQ(sample.objects[1].desc, "dog");
}

TEST_F(LossesTest, OutlinesThatLeaveTheImageAreCut) {
  ForeignObject triangle = box(100, 50, 300, 150);
  triangle.ring = {{100, 50}, {300, 50}, {100, 150}};
  const WrittenSet written = convert({image({triangle})});
  // the visible part is the square of 100..200 x 50..100
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{500, 500, 999, 500, 999, 999, 500, 999}}));
  EXPECT_EQ(test::noted(written, "objects clipped to the image"), 1);
}

TEST_F(LossesTest, NormalizedBoxesInPlaceOfPixelsAreRefused) {
  EXPECT_NE(test::problem_of([&] {
              convert({image({box(0.1, 0.1, 0.5, 0.9)})});
            }).what.find("normalized (0 to 1)"),
            std::string::npos);
}

TEST_F(LossesTest, OneBadLineIsOneLostRecord) {
  const std::string good = R"({"file_name": "a.png", "objects": []})";
  const ForeignSet set = read_hf_files(
      {write("f.jsonl", "\xEF\xBB\xBF" + good + "\n\n{bad\n" + good + "\r\n")}, {.split = "f"});
  ASSERT_EQ(set.splits.at("f").size(), 2u);
  EXPECT_TRUE(set.splits.at("f")[0].where.ends_with("f.jsonl:1"));
  EXPECT_TRUE(set.splits.at("f")[1].where.ends_with("f.jsonl:4"));
  EXPECT_EQ(set.ledger.num_records_lost(), 1);
  EXPECT_NE(set.ledger.places().front().find("f.jsonl:3: "), std::string::npos);
}

TEST_F(LossesTest, ASplitWithoutRecordsNamesEveryReasonAndItsPlace) {
  ForeignSet set{.splits = {{"train", {image({box(50, 1, 1, 50)})}}}, .repeats_images = true};
  set.ledger.lose_record("an annotation whose image is not listed", "train.json: annotations[3]");
  const Problem problem = test::problem_of([&] { convert_set(set); });
  for (const char* text : {"1 × a box with swapped corners", "1 × an annotation whose image is not",
                           "train.json: annotations[3] (an annotation whose image"})
    EXPECT_NE(problem.what.find(text), std::string::npos) << problem.what;
}

}  // namespace rematch
