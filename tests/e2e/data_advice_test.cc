// Advice of the data commands of `rematch`.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

/// A program with images in `images`.
class DataAdvice : public testing::Test {
 protected:
  DataAdvice() {
    std::filesystem::copy(test::Program::golden("images"), program_.dir().file("images"));
  }

  /// A record of an image of 64 x 64 with an object.
  static std::string record(const std::string& box, const std::string& image = "0.png") {
    return "{\"images\": [\"images/" + image +
           "\"], \"width\": 64, \"height\": 64, \"objects\": [{\"desc\": \"cat\", \"bbox_2d\": [" +
           box + "]}]}\n";
  }

  /// COCO annotations of images, with a box each.
  void write_coco(const std::string& name, int num_images) const {
    std::string images, boxes;
    for (int i = 0; i < num_images; ++i) {
      const std::string id = std::to_string(i), comma = i > 0 ? ", " : "";
      images += comma + "{\"id\": " + id + ", \"file_name\": \"" + id +
                ".png\", \"width\": 64, \"height\": 64}";
      boxes += comma + "{\"image_id\": " + id + ", \"category_id\": 3, \"bbox\": [8, 8, 32, 16]}";
      program_.dir().write("images/" + id + ".png",
                           read_file(test::Program::golden("images/0.png")));
    }
    program_.dir().write(name, "{\"images\": [" + images +
                                   "], \"categories\": [{\"id\": 3, \"name\": \"cat\"}], "
                                   "\"annotations\": [" +
                                   boxes + "]}");
  }

  test::Program program_;
};

}  // namespace

TEST_F(DataAdvice, AnImportOfOneSplitIsDividedNext) {
  write_coco("instances_train.json", 2);
  write_coco("instances_val.json", 2);
  const std::string options = " --images images --out data";
  EXPECT_THAT(program_.run("data from-coco instances_train.json" + options).out,
              HasSubstr("next: rematch data show data/train.jsonl --out sheet.png\n"
                        "      rematch data split data/train.jsonl --val 0.2\n"
                        "      rematch init MODEL data/train-train.jsonl --val "
                        "data/train-val.jsonl\n"));
  EXPECT_THAT(program_.run("data from-coco instances_train.json instances_val.json" + options).out,
              HasSubstr("      rematch init MODEL data/train.jsonl --val data/val.jsonl\n"));
  EXPECT_THAT(program_.run("data from-coco instances_train.json" + options).out,
              HasSubstr("      rematch init MODEL data/train.jsonl --val data/val.jsonl\n"))
      << "written before";
}

TEST_F(DataAdvice, InitAndShowSayThatBoxesAreInPixels) {
  std::string lines;
  for (int i = 0; i < 8; ++i) lines += record("3, 2, 30, 40");
  program_.dir().write("pixels.jsonl", lines);
  for (const std::string& command : {"init " + test::Program::model() + " pixels.jsonl",
                                     std::string("data show pixels.jsonl --out a.png")}) {
    const test::ProcessResult result = program_.run(command);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    EXPECT_THAT(result.err, HasSubstr("LOOK LIKE PIXELS")) << command;
    EXPECT_THAT(result.err, HasSubstr("`rematch data check pixels.jsonl --fix OUT --unit pixels`"));
  }
}

TEST_F(DataAdvice, ManyBadBoxesAreAFewErrorsAndTheirRepair) {
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += record("300, 200, 30, 40");
  program_.dir().write("xywh.jsonl", lines);
  for (const std::string& command :
       {"init " + test::Program::model() + " xywh.jsonl",
        std::string("data show xywh.jsonl --out a.png"),
        "check " + program_.config("custom: {train_jsonl: xywh.jsonl}\n")}) {
    const test::ProcessResult result = program_.run(command);
    EXPECT_LT((result.err + result.out).size(), 6000u) << command;
    EXPECT_THAT(result.err + result.out,
                HasSubstr("100 problems in 100 lines, of which 3 are shown"));
    EXPECT_THAT(result.err + result.out, HasSubstr("rematch data check xywh.jsonl --fix OUT"));
  }
}

TEST_F(DataAdvice, CheckNamesTheUnitThatRepairs) {
  for (const auto& [box, unit] : {std::pair("0.1, 0.2, 0.5, 0.9", "normalized"),
                                  {"100.5, 200.25, 500.5, 900.75", "bins"},
                                  {"3.5, 2.25, 30.5, 40.75", "pixels"}}) {
    program_.dir().write("raw.jsonl", record(box) + record(box, "1.png"));
    const std::string repair = std::string("rematch data check raw.jsonl --fix OUT --unit ") + unit;
    EXPECT_THAT(program_.run("data check raw.jsonl").out, HasSubstr(repair));
    EXPECT_EQ(
        program_.run(std::string("data check raw.jsonl --fix o.jsonl --unit ") + unit).exit_code,
        0);
    EXPECT_EQ(program_.run("data check o.jsonl").out.find("refuses"), std::string::npos) << unit;
  }
}

TEST_F(DataAdvice, RecordsOfOneImageAreFoundAndJoined) {
  program_.dir().write("raw.jsonl", record("3, 2, 30, 40") + record("300, 200, 900, 999"));
  const std::string found = "1 image is in 2 records with different objects",
                    repair = "`rematch data check raw.jsonl --fix OUT`";
  const test::ProcessResult checked = program_.run("data check raw.jsonl");
  EXPECT_EQ(checked.exit_code, 3);
  EXPECT_THAT(checked.out, HasSubstr("fix this first: " + found));
  EXPECT_THAT(checked.out, HasSubstr(repair));
  const test::ProcessResult plan =
      program_.run("check " + program_.config("custom: {train_jsonl: raw.jsonl}\n"));
  EXPECT_THAT(plan.out + plan.err, HasSubstr(found));
  EXPECT_EQ(program_.run("data check raw.jsonl --fix joined.jsonl").exit_code, 0);
  EXPECT_EQ(program_.run("data check joined.jsonl").exit_code, 0);
}

TEST_F(DataAdvice, WhatCannotBeRepairedKeepsItsAdvice) {
  const std::string good = record("3, 2, 30, 40");
  program_.dir().write("latin.jsonl",
                       good +
                           "{\"images\": [\"images/0.png\"], \"width\": 64, \"height\": 64, "
                           "\"objects\": [{\"desc\": \"caf\xE9\", \"bbox_2d\": [3, 2, 9, 9]}]}\n");
  const std::string iconv = "iconv -f GBK -t UTF-8 latin.jsonl";
  EXPECT_THAT(program_.run("data check latin.jsonl").out, HasSubstr(iconv));
  EXPECT_THAT(program_.run("data check latin.jsonl --fix o.jsonl").out, HasSubstr(iconv));
  program_.dir().write("images/a.heic", std::string("\0\0\0\x18"
                                                    "ftypheic\0\0\0\0",
                                                    16) +
                                            std::string(64, 'x'));
  program_.dir().write("heic.jsonl", record("3, 2, 30, 40", "a.heic"));
  const test::ProcessResult result = program_.run("data check heic.jsonl --fix o2.jsonl");
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_THAT(result.err, HasSubstr("pillow-heif"));
}

TEST_F(DataAdvice, ARepairThatLosesMostSaysSoFirst) {
  program_.dir().write("lossy.jsonl", record("3, 2, 30, 40") + record("3, 2, 30, 40", "gone.png") +
                                          record("3, 2, 30, 40", "away.png"));
  const test::ProcessResult fixed = program_.run("data check lossy.jsonl --fix o.jsonl");
  EXPECT_EQ(fixed.exit_code, 0) << fixed.err;
  EXPECT_EQ(fixed.out.rfind("left out 2 of 3 records: most of the file\n", 0), 0u) << fixed.out;
}

TEST_F(DataAdvice, SwappedCornersHaveOneCount) {
  program_.dir().write("raw.jsonl", record("30, 40, 3, 2") + record("30, 40, 30, 2"));
  const std::string out = program_.run("data check raw.jsonl").out;
  EXPECT_THAT(out, HasSubstr("boxes with swapped corners: 2\n"));
  EXPECT_THAT(out, HasSubstr("swapped corners in 2 of 2 boxes"));
}

TEST_F(DataAdvice, ADirectoryOfRecordsIsOneErrorForEveryCommand) {
  program_.dir().write("cards/train.jsonl", record("3, 2, 30, 40"));
  const std::string config = program_.config("custom: {train_jsonl: cards}\n");
  for (const std::string& command :
       {"init " + test::Program::model() + " cards", "train " + config, "check " + config,
        std::string("data show cards --out a.png"), std::string("data split cards"),
        std::string("data boxes cards --out b.jsonl")}) {
    const test::ProcessResult result = program_.run(command);
    EXPECT_EQ(result.exit_code, 2) << command << result.err;
    EXPECT_THAT(result.err + result.out,
                HasSubstr("the records are one JSONL file, not a directory"))
        << command;
    EXPECT_THAT(result.err + result.out, HasSubstr("it is a directory with cards/train.jsonl"));
  }
}

TEST_F(DataAdvice, AModelThatIsNotKnownIsNamedBeforeItsTokenizer) {
  program_.dir().write("llama/config.json", R"({"model_type": "llama"})");
  program_.dir().write("bare/config.json", read_file(test::Program::model() + "/config.json"));
  program_.dir().write("train.jsonl", record("3, 2, 30, 40"));
  for (const char* command : {"init {} train.jsonl", "eval {} train.jsonl", "probe {} train.jsonl",
                              "predict {} images/0.png"}) {
    const auto run = [&](const std::string& model) {
      std::string text = command;
      return program_.run(text.replace(text.find("{}"), 2, model));
    };
    EXPECT_EQ(run("llama").exit_code, 3) << command;
    EXPECT_THAT(run("llama").err, HasSubstr("\"llama\"")) << command;
    EXPECT_EQ(run("bare").exit_code, 2) << command;
    EXPECT_THAT(run("bare").err, HasSubstr("it has no tokenizer")) << command;
  }
}

}  // namespace rematch
