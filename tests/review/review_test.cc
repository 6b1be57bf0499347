#include "tools/review/review.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "learn/data/dataset.h"
#include "review/review_dir.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/draw/canvas.h"
#include "tools/draw/encode.h"

namespace rematch {
namespace {

class ReviewTest : public test::ReviewDir {};

int64_t line_of(const Review& review, FindingKind kind) {
  return review.of(kind).size() == 1 ? review.of(kind)[0].line : -1;
}

}  // namespace

TEST_F(ReviewTest, FindsEveryKindOfProblemWithItsLine) {
  const Review review =
      review_jsonl(write(record(box("1, 2, 999, 4")) +  //
                                                        // swapped corners
                         record(box("500, 0, 10, 999")) +
                         // no area; 1.6 x 0.8 px
                         record(box("5, 5, 5, 900") + ", " + box("1, 1, 9, 9")) +
                         // twice
                         record(box("1, 1, 800, 900") + ", " + box("1, 1, 800, 900")) +
                         record("", "gone.png") +    //
                         record("", "a.png", 201) +  //
                         // refused
                         record(box("1, 2, 3000, 4")) + record(box("1, 2, 3, 4", "bbox"))),
                   true);
  EXPECT_EQ(review.num_records, 8);
  EXPECT_EQ(line_of(review, FindingKind::kInverted), 2);
  EXPECT_EQ(line_of(review, FindingKind::kNoArea), 3);
  EXPECT_EQ(review.of(FindingKind::kTiny).back().line, 3);
  EXPECT_EQ(line_of(review, FindingKind::kRepeatedObject), 4);
  EXPECT_EQ(line_of(review, FindingKind::kUnreadableImage), 5);
  EXPECT_EQ(line_of(review, FindingKind::kWrongSize), 6);
  ASSERT_EQ(review.of(FindingKind::kRefused).size(), 2u);
  EXPECT_EQ(review.of(FindingKind::kRefused)[1].line, 8);
  EXPECT_EQ(review.of(FindingKind::kRepeatedImage).size(), 4u);
  EXPECT_EQ(review.num_empty_scenes, 2);
  EXPECT_EQ(review.classes.at("cat"), 6);
  EXPECT_FALSE(review.unit_doubt);
}

TEST_F(ReviewTest, ALongLabelIsCutWhereItIsNamed) {
  const std::string object =
      fmt::format("{{\"desc\": \"{}\", \"bbox_2d\": [1, 1, 1, 9]}}", std::string(5000, 'x'));
  const Review review = review_jsonl(write(record(object)), false);
  ASSERT_EQ(review.of(FindingKind::kNoArea).size(), 1u);
  EXPECT_LT(review.of(FindingKind::kNoArea)[0].what.size(), 120u);
}

TEST_F(ReviewTest, AnInterruptEndsIt) {
  const std::string path = directory_.write("data.jsonl", record(box("1, 2, 3, 4")));
  set_interrupt_requested(true);
  EXPECT_THROW(review_jsonl(path, false), Interrupted);
  EXPECT_THROW(Dataset::load(path, {}), Interrupted);
  set_interrupt_requested(false);
  EXPECT_EQ(review_jsonl(path, false).num_records, 1);
}

TEST_F(ReviewTest, FindsAnObjectThatIsThereTwiceWithSlightlyDifferentSides) {
  const std::string dog = R"({"desc": "dog", "bbox_2d": [101, 101, 501, 501]})";
  const Review review = review_jsonl(
      write(record(box("100, 100, 500, 500") + ", " + dog + ", " + box("300, 100, 500, 500")) +
            record(box("100, 100, 500, 500") + ", " + dog + ", " + box("110, 100, 500, 490"))),
      false);
  EXPECT_EQ(line_of(review, FindingKind::kNearRepeat), 2);
  EXPECT_NE(
      review.of(FindingKind::kNearRepeat)[0].what.find("objects[2] \"cat\" [110, 100, 500, 490]"),
      std::string::npos);
  EXPECT_TRUE(review.of(FindingKind::kRepeatedObject).empty());
}

TEST_F(ReviewTest, FindsImagesOfSixteenBitGrey) {
  directory_.write("deep.png",
                   read_file(test::source_path("tests/golden/vision_images/grey16.png")));
  EXPECT_EQ(line_of(review_jsonl(write(record("") + record("", "deep.png")), true),
                    FindingKind::kDeepGrey),
            2);
}

TEST_F(ReviewTest, CountsTurnedPhotosAndNamesRecordsOfTheirUnturnedPixels) {
  using namespace std::string_literals;
  constexpr size_t kAfterHeader = 33;  // signature and IHDR
  const std::string exif =
      "\0\0\0\x1A"s
      "eXIfMM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
      "\0\0\0\0\0\0\0\0"s;
  directory_.write("tall.png",
                   encode_png(Canvas(100, 200, kWhite).image()).insert(kAfterHeader, exif));
  directory_.write("wide.png",
                   encode_png(Canvas(200, 100, kWhite).image()).insert(kAfterHeader, exif));
  directory_.write("square.png",
                   encode_png(Canvas(100, 100, kWhite).image()).insert(kAfterHeader, exif));
  const std::string lines = record(box("1, 2, 300, 400"), "tall.png") +
                            record(box("1, 2, 300, 400"), "wide.png") +
                            record(box("1, 2, 300, 400"), "square.png", 100);
  const Review review = review_jsonl(write(lines), false);
  EXPECT_EQ(review.num_turned, 3);
  EXPECT_EQ(review.num_hidden_turns, 1);
  EXPECT_EQ(line_of(review, FindingKind::kUnturned), 2);
  EXPECT_TRUE(review.of(FindingKind::kWrongSize).empty());
  const Changes repairs = repair(lines);
  EXPECT_EQ(repairs.at("a photo annotated in stored, not in EXIF orientation"), 1);
  EXPECT_EQ(fixed_boxes(), "[1, 2, 300, 400]\n[1, 2, 300, 400]\n");
}

TEST_F(ReviewTest, SuspectsPixelsWhenNoCoordinateExceedsItsSide) {
  std::string lines;
  for (int i = 0; i < 20; ++i) lines += record(box(fmt::format("{}, 10, 199, 99", i)));
  EXPECT_EQ(review_jsonl(write(lines), false).unit_doubt->unit, CoordinateUnit::kPixels);
  EXPECT_FALSE(review_jsonl(write(lines + record(box("1, 1, 201, 5"))), false).unit_doubt);
}

TEST_F(ReviewTest, ImagesAreComparedByContent) {
  directory_.write("again.png", read_file(directory_.file("a.png")));
  const Review review = review_jsonl(write(record("") + record("", "again.png")), false);
  ASSERT_EQ(review.of(FindingKind::kRepeatedImage).size(), 1u);
  EXPECT_NE(review.of(FindingKind::kRepeatedImage)[0].what.find("another name"), std::string::npos);
}

TEST_F(ReviewTest, MissingImagesAndAddressesSayWhereTheyAreLookedFor) {
  const Review review =
      review_jsonl(write(record("", "gone.png") + record("", "https://example.org/a.png")), false);
  const std::vector<Finding>& found = review.of(FindingKind::kUnreadableImage);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0].what.find("the directory of the JSONL"), std::string::npos) << found[0].what;
  EXPECT_NE(found[1].what.find("not fetched"), std::string::npos) << found[1].what;
}

TEST_F(ReviewTest, AnArrayAndPrettyPrintedJsonNameTheCommand) {
  for (const std::string& text :
       {"[" + record("") + "]", "[\n" + record("") + ",\n" + record("") + "\n]\n",
        std::string("{\n  \"images\": [\"a.png\"],\n  \"width\": 200\n}\n")}) {
    const UserError error = test::catch_user_error([&] { review_jsonl(write(text), false); });
    EXPECT_NE(error.problems()[0].fix.find("jq -c"), std::string::npos) << error.what();
  }
  const UserError packed =
      test::catch_user_error([&] { review_jsonl(write("\x1f\x8b\x08"), false); });
  EXPECT_NE(packed.problems()[0].fix.find("gunzip"), std::string::npos) << packed.what();
  const UserError csv = test::catch_user_error(
      [&] { review_jsonl(write("filename,xmin,ymin,xmax,ymax,class\na.png,1,2,3,4,a\n"), false); });
  EXPECT_NE(csv.problems()[0].fix.find("from-csv"), std::string::npos);
}

TEST_F(ReviewTest, ADecodingRepairLeavesOutTruncatedImages) {
  const std::string good = record(box("1, 2, 30, 40")), out = directory_.file("fixed.jsonl");
  directory_.write("cut.png", read_file(directory_.file("a.png")).substr(0, 60));
  const std::string path = write(good + record(box("1, 2, 30, 40"), "cut.png"));
  ASSERT_EQ(line_of(review_jsonl(path, true), FindingKind::kUnreadableImage), 2);
  EXPECT_EQ(write_repaired(path, out, {.decode = true}).losses.at("an image that cannot be read"),
            1);
  EXPECT_TRUE(review_jsonl(out, true).of(FindingKind::kUnreadableImage).empty());
}

TEST_F(ReviewTest, CoordinatesUpToAThousandAreThousandthsAndStayInTheirPlaces) {
  const Changes repairs =
      repair(large(box("0, 0, 500, 1000")) + large(box("500, 500, 1000, 1000")) +
             large(box("200, 200, 400, 400")));
  EXPECT_EQ(fixed_boxes(), "[0, 0, 500, 999]\n[500, 500, 999, 999]\n[200, 200, 400, 400]\n");
  EXPECT_EQ(repairs.at("coordinates changed from 1000 to 999"), 3);
  EXPECT_EQ(repairs.count("records converted from pixels to bins"), 0u);
}

TEST_F(ReviewTest, NumbersOutsideTheirImageAreNoPixels) {
  const Changes repairs = repair(
      large(box("1, 2, 3, 4")) + record(box("-5, 20, 1100, 200")) + record(box("0.5, 10, 300, 50")),
      {.unit = CoordinateUnit::kBins});
  EXPECT_EQ(fixed_boxes(), "[1, 2, 3, 4]\n[1, 10, 300, 50]\n");
  EXPECT_EQ(repairs.at("an object with a number outside the bins 0 to 999"), 1);
  EXPECT_EQ(repairs.at("fractions of bins rounded"), 1);
}

TEST_F(ReviewTest, ARepeatIsOneHoweverItIsWritten) {
  const Changes repairs =
      repair(record(R"({"desc": "cat", "bbox_2d": [1, 2, 30, 40]}, )"
                    R"({"bbox_2d": [1, 2, 30, 40], "desc": "cat"}, )"
                    R"({"desc": " cat", "bbox_2d": [1, "<|coord_2|>", 30, 40.0]}, )"
                    R"({"desc": "cat", "poly": [1, 2, 30, 2, 30, 40]}, )"
                    R"({"desc": "cat", "poly": [[1, 2], [30, 2], [30, 40]]})"));
  EXPECT_EQ(repairs.at("repeated objects removed"), 3);
  EXPECT_EQ(fixed_boxes(), "[1, 2, 30, 40][1, 2, 30, 2, 30, 40]\n");
  EXPECT_TRUE(
      review_jsonl(directory_.file("fixed.jsonl"), false).of(FindingKind::kRepeatedObject).empty());
}

TEST_F(ReviewTest, ImagesThatAnAbsolutePathOrALinkLeadsOutToAreCounted) {
  directory_.write("data/c.png", encode_png(Canvas(200, 100, kWhite).image()));
  std::filesystem::create_symlink(directory_.file("a.png"), directory_.file("data/link.png"));
  const std::string path = directory_.write(
      "data/train.jsonl", record("", "../a.png") + record("", directory_.file("a.png")) +
                              record("", "link.png") + record("", "c.png") +
                              record("", "../data/c.png"));
  EXPECT_EQ(review_jsonl(path, false).num_outside, 2) << "../a.png is what converters write";
  std::filesystem::create_directory_symlink(directory_.path(), directory_.file("data/up"));
  directory_.write("data/train.jsonl", record("", "up/a.png") + record("", "../data/up/a.png"));
  EXPECT_EQ(review_jsonl(path, false).num_outside, 2);
}

TEST_F(ReviewTest, PathsOfTheRepairedCopyHoldWhereItsDirectoryIsALink) {
  std::filesystem::create_directories(directory_.file("far/away/data"));
  std::filesystem::create_directory_symlink(directory_.file("far/away/data"),
                                            directory_.file("link"));
  const std::string out = directory_.file("link/fixed.jsonl");
  write_repaired(write(record(box("1, 2, 30, 40"))), out, {});
  EXPECT_EQ(Dataset::load(out, {}).size(), 1);  // checks that the image is there
}

TEST_F(ReviewTest, OneRecordThatMustBePixelsMakesTheWholeFilePixels) {
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += large(box("64, 48, 320, 240"));
  repair(large(box("64, 48, 320.5, 240")) + lines);
  EXPECT_EQ(fixed_boxes().substr(0, 42), "[100, 100, 501, 500]\n[100, 100, 500, 500]\n");
}

TEST_F(ReviewTest, WhatTheCensusSuspectsIsConvertedAlsoUnderForeignNames) {
  std::string lines;
  for (int i = 0; i < 30; ++i) lines += large(R"({"label": "cat", "bbox": [64, 48, 320, 240]})");
  const Changes repairs = repair(lines);
  EXPECT_EQ(repairs.at("records converted from pixels to bins"), 30);
  EXPECT_EQ(fixed_boxes().substr(0, 21), "[100, 100, 500, 500]\n");
}

TEST_F(ReviewTest, ACopyWithoutRecordsIsAnErrorAndIsNotWritten) {
  for (const std::string& lines : {std::string("{]\n"), std::string()}) {
    EXPECT_EQ(test::catch_user_error([&] { repair(lines); }).kind(), ErrorKind::kData);
    EXPECT_THROW(read_file(directory_.file("fixed.jsonl")), UserError);
  }
}

TEST_F(ReviewTest, TheOriginalIsNeverReplaced) {
  const std::string path = write(record(box("1, 2, 3, 4")));
  const UserError error = test::catch_user_error(
      [&] { write_repaired(path, directory_.path() + "/./data.jsonl", {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
}

TEST_F(ReviewTest, FindsTextsOfAddedTokensAndImagesThatAreTooLongAndThin) {
  directory_.write("thin.png", encode_png(Canvas(402, 2, kWhite).image()));
  const std::string thin = R"({"images": ["thin.png"], "width": 402, "height": 2, "objects": []})";
  const std::string lines = record(R"({"desc": "a<|im_end|>b", "bbox_2d": [1, 2, 3, 4]})") + thin +
                            "\n" + record(box("1, 2, 3, 4"));
  EXPECT_EQ(review_jsonl(write(lines), false).of(FindingKind::kRefused).size(), 2u);
  repair(lines);
  EXPECT_EQ(review_jsonl(directory_.file("fixed.jsonl"), false).num_records, 1);
}

TEST_F(ReviewTest, TellsTheColumnOfWhatIsNoJson) {
  const Review review = review_jsonl(write(record(box("1, 2, 3, 4")) + "{\"images\": ]\n"), false);
  ASSERT_EQ(review.of(FindingKind::kRefused).size(), 1u);
  EXPECT_TRUE(review.of(FindingKind::kRefused)[0].what.starts_with("column 12: not valid JSON"))
      << review.of(FindingKind::kRefused)[0].what;
}

TEST_F(ReviewTest, AMissingFileAndAForeignOneAreErrors) {
  EXPECT_EQ(
      test::catch_user_error([&] { review_jsonl(directory_.file("none.jsonl"), false); }).kind(),
      ErrorKind::kEnvironment);
  const std::string path = write("{\"images\": [], \"annotations\": [], \"categories\": []}");
  EXPECT_EQ(test::catch_user_error([&] { review_jsonl(path, false); }).kind(), ErrorKind::kData);
}

}  // namespace rematch
