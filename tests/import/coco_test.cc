// Which split a file is, and what its annotations say.
#include <filesystem>

#include "base/interrupt.h"
#include "import/import_dir.h"

namespace rematch {
namespace {

using testing::Test;

class CocoDir : public test::ImportDir {
 protected:
  WrittenSet convert(const std::vector<std::string>& files, const ImportOptions& options = {}) {
    return write_records(read_coco_files(files, options), out(), options);
  }
};

}  // namespace

TEST(SplitOfName, IsAWholeWordOfTheFilesName) {
  EXPECT_EQ(guess_split("instances_train2017.json"), "train");
  EXPECT_EQ(guess_split("instances_val2017.json"), "val");
  EXPECT_EQ(guess_split("pretrain_val.json"), "val");
  EXPECT_EQ(guess_split("constrained_val.json"), "val");
  EXPECT_EQ(guess_split("Validation.json"), "val");
  EXPECT_EQ(guess_split("pretrain.json"), "pretrain");
  EXPECT_EQ(guess_split("trainval.json"), "trainval");
  EXPECT_EQ(guess_split("train_val.json"), "train_val");  // both: neither
}

TEST(SplitOfName, IsAWordOfTheFolderWhereTheFilesNameHasNone) {
  EXPECT_EQ(guess_split("train/_annotations.coco.json"), "train");
  EXPECT_EQ(guess_split("valid/_annotations.coco.json"), "val");
  EXPECT_EQ(guess_split("a/test/_annotations.coco.json"), "test");
  EXPECT_EQ(guess_split("strained/result.json"), "result");
  EXPECT_EQ(guess_split("train/instances_val.json"), "val");
}

TEST_F(CocoDir, RoboflowsFoldersAreSplits) {
  for (const std::string split : {"train", "valid", "test"}) {
    write_image(split + "/" + split + ".png");
    write(split + "/_annotations.coco.json", test::coco(split + ".png"));
  }
  const WrittenSet result =
      convert({path("train/_annotations.coco.json"), path("valid/_annotations.coco.json"),
               path("test/_annotations.coco.json")});
  ASSERT_EQ(result.splits.size(), 3u);
  EXPECT_EQ(read_coco_files({dir_.path()}, {}).splits.size(), 3u);  // their directory will do
  EXPECT_NE(test::problem_of([&] { read_coco_files({out()}, {}); }).what.find("train, valid"),
            std::string::npos);
  for (const std::string split : {"train", "val", "test"})
    EXPECT_EQ(written(split).size(), 1) << split;
}

TEST_F(CocoDir, SharesOfTheSidesAreNoPixels) {
  write_image("a.png");
  const auto with_box = [](const std::string& box) {
    return R"({"images": [{"id": 1, "file_name": "a.png"}], "categories": [{"id": 1, "name": "cat"}],
               "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": )" +
           box + "}]}";
  };
  const std::string shares = write("train.json", with_box("[0.1, 0.1, 0.5, 0.9]"));
  const UserError error = test::catch_user_error([&] { convert({shares}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find("normalized (0 to 1)"), std::string::npos);
  EXPECT_EQ(convert({write("train.json", with_box("[0.1, 0.1, 5, 9]"))}).splits[0].num_boxes, 1);
}

TEST_F(CocoDir, AnInterruptEndsTheReadingOfImagesAndWritesNothing) {
  write_image("a.png");
  const std::string file = write("train.json", test::coco("a.png"));
  set_interrupt_requested(true);
  EXPECT_THROW(convert({file}), Interrupted);
  set_interrupt_requested(false);
  EXPECT_FALSE(std::filesystem::exists(out() + "/train.jsonl"));
  EXPECT_EQ(convert({file}).splits.size(), 1u);
}

TEST_F(CocoDir, OneImageUnderTwoIdsIsAnError) {
  write_image("a.png");
  const std::string twice = write(
      "train.json",
      R"({"images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "a.png"}], )"
      R"("categories": [{"id": 1, "name": "cat"}], )"
      R"("annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 5, 9]}]})");
  EXPECT_NE(test::problem_of([&] { convert({twice}); }).what.find("give both the same id"),
            std::string::npos);
}

TEST_F(CocoDir, TwoFilesOfOneSplitAreAnErrorUnlessTheSplitIsNamed) {
  write_image("a.png");
  const std::vector<std::string> files = {write("pretrain_train.json", test::coco("a.png")),
                                          write("more_train.json", test::coco("a.png"))};
  const UserError error = test::catch_user_error([&] { convert(files); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].fix.find("--split"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out()));
  convert(files, {.split = "train"});
  EXPECT_EQ(written("train").size(), 2);
}

TEST_F(CocoDir, CrowdsAreWhatIsMarkedAsOne) {
  write_image("a.png");
  const std::string box = R"("image_id": 1, "category_id": 7, "bbox": [20, 10, 100, 50])";
  for (const char* none : {"0", "\"0\"", "null", "false", "0.0"}) {
    const std::string file =
        write("train.json", test::coco("a.png", "{" + box + ", \"iscrowd\": " + none + "}"));
    EXPECT_EQ(convert({file}).splits[0].num_boxes, 1) << none;
  }
  for (const char* crowd : {"1", "\"1\"", "true"}) {
    const std::string file =
        write("train.json", test::coco("a.png", "{" + box + ", \"iscrowd\": " + crowd + "}"));
    const WrittenSet result = convert({file});
    EXPECT_EQ(result.splits[0].num_boxes, 0) << crowd;
    EXPECT_EQ(result.notes.at("left out: crowds"), 1);
    EXPECT_EQ(result.notes.at("empty scenes: all objects of the image were left out"), 1);
  }
  const std::string file =
      write("train.json", test::coco("a.png", "{" + box + ", \"iscrowd\": \"no\"}"));
  EXPECT_NE(test::problem_of([&] { convert({file}); }).where.find("annotations[0].iscrowd"),
            std::string::npos);
}

TEST_F(CocoDir, AFileOfLabelMeOrLabelStudioIsNamed) {
  const std::string labelme =
      write("a.json", R"({"imagePath": "a.png", "shapes": [], "imageHeight": 1})");
  EXPECT_NE(test::problem_of([&] { convert({labelme}); }).fix.find("rematch data from-labelme"),
            std::string::npos);
  const std::string tasks = write("tasks.json", R"([{"id": 1, "annotations": []}])");
  EXPECT_NE(test::problem_of([&] { convert({tasks}); }).what.find("Label Studio"),
            std::string::npos);
}

TEST_F(CocoDir, WrongImagesNameTheOptionAndAnExample) {
  const std::string file = write("train.json", test::coco("flower.png"));
  const std::string photos = path("photos");
  const Problem wrong = test::problem_of([&] { convert({file}, {.images_dir = photos}); });
  EXPECT_EQ(wrong.where, "--images " + photos + " (for " + out() + "/train.jsonl)");
  EXPECT_EQ(wrong.what, "none of 1 image exists, e.g. flower.png");
  const Problem absent = test::problem_of([&] { convert({file}); });
  EXPECT_EQ(absent.where, dir_.path() + " (for " + out() + "/train.jsonl)");
  EXPECT_NE(absent.fix.find("the directory of flower.png with --images"), std::string::npos);
}

TEST_F(CocoDir, PathsHoldWhereTheOutputIsALink) {
  write_image("set/a.png");
  const std::string file = write("set/train.json", test::coco("a.png"));
  std::filesystem::create_directories(path("far/away/data"));
  std::filesystem::create_directory_symlink(path("far/away/data"), path("out"));
  convert({file});
  EXPECT_EQ(written("train").size(), 1);  // checks that the image is there
}

}  // namespace rematch
