// What the data commands of `rematch` advise.
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
    EXPECT_THAT(result.err + result.out,
                HasSubstr("rematch data check xywh.jsonl --fix OUT --boxes xywh"));
  }
}

}  // namespace rematch
