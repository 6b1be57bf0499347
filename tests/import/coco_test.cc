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
    return convert_set(read_coco_files(files, options), options);
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
  EXPECT_NE(test::problem_of([&] { read_coco_files({out()}, {}); }).what.find("no .json files"),
            std::string::npos);
  for (const std::string split : {"train", "val", "test"})
    EXPECT_EQ(written(split).size(), 1) << split;
}

TEST_F(CocoDir, SharesOfTheSidesAreNoPixels) {
  write_image("a.png");
  const auto with_box = [](const std::string& box) {
    return R"({"images": [{"id": 1, "file_name": "a.png"}],
    "categories": [{"id": 1, "name": "cat"}],
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

TEST_F(CocoDir, ImagesThatShareAnIdOrAFileAreLeftOut) {
  for (const char* name : {"a.png", "b.png", "c.png"}) write_image(name);
  const auto with_images = [&](const std::string& images) {
    return convert({write("train.json",
                          R"({"images": [{"id": 9, "file_name": "c.png"}, )" + images +
                              R"(], "categories": [{"id": 1, "name": "cat"}], "annotations": [)"
                              R"({"image_id": 9, "category_id": 1, "bbox": [20, 10, 100, 50]}, )"
                              R"({"image_id": 1, "category_id": 1, "bbox": [0, 0, 50, 90]}]})")});
  };
  EXPECT_EQ(test::records_lost(with_images(R"({"id": 1, "file_name": "a.png"},
      {"id": 2, "file_name": "a.png"})"),
                               reason::kTwoEntries),
            2);
  EXPECT_EQ(written("train").size(), 1);
  EXPECT_EQ(test::records_lost(with_images(R"({"id": 1, "file_name": "a.png"},
      {"id": 1, "file_name": "b.png"})"),
                               reason::kSharedId),
            2);
  EXPECT_EQ(written("train").size(), 1);
}

TEST_F(CocoDir, TwoFilesOfOneSplitAreAnErrorUnlessTheSplitIsNamed) {
  write_image("a.png");
  const std::vector<std::string> files = {write("pretrain_train.json", test::coco("a.png")),
                                          write("more_train.json", test::coco("a.png"))};
  const UserError error = test::catch_user_error([&] { convert(files); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].fix.find("--split"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out()));
  EXPECT_EQ(test::noted(convert(files, {.split = "train"}),
                        "entries that repeat an image with the same objects"),
            1);
  EXPECT_EQ(written("train").size(), 1);
}

TEST_F(CocoDir, EntriesOfOneFileWithOtherSizesAreLeftOutInAnyOrder) {
  write_image("a.png");  // 200 x 100
  write_image("b.png");
  const std::string right = R"("width": 200, "height": 100})",
                    half = R"("width": 100, "height": 50})";
  for (const auto& [first, second] : {std::pair(right, half), std::pair(half, right)}) {
    const std::string file =
        write("train.json", R"({"categories": [{"id": 1, "name": "cat"}],
      "images": [{"id": 1, "file_name": "a.png", )" +
                                first + R"(, {"id": 2, "file_name": "a.png", )" + second +
                                R"(, {"id": 3, "file_name": "b.png"}],
      "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 20, 20]},
                      {"id": 2, "image_id": 2, "category_id": 1, "bbox": [1, 1, 20, 20]}]})");
    convert({file});
    EXPECT_EQ(written("train").size(), 1) << first;
  }
}

TEST_F(CocoDir, EntriesOfOneFileThatLackEachOthersObjectsAreLeftOut) {
  write_image("a.png");
  write_image("b.png");
  const std::string file = write("train.json", R"({"categories": [{"id": 1, "name": "cat"}],
      "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "./a.png"},
                 {"id": 3, "file_name": "b.png"}],
      "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 20, 20]}]})");
  EXPECT_EQ(test::records_lost(convert({file}), reason::kTwoEntries), 2);
  EXPECT_EQ(written("train").size(), 1);
}

TEST_F(CocoDir, AnImageWithoutAnnotationsIsNoEmptySceneWhereAnnotationsMissTheirImages) {
  write_image("a.png");
  write_image("b.png");
  const std::string file = write("train.json", R"({"categories": [{"id": 1, "name": "cat"}],
      "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
      "annotations": [{"id": 1, "image_id": 2, "category_id": 1, "bbox": [1, 1, 20, 20]},
                      {"id": 2, "image_id": "a.png", "category_id": 1, "bbox": [1, 1, 9, 9]}]})");
  EXPECT_EQ(test::records_lost(convert({file}), reason::kMaybeNotEmpty), 1);
  EXPECT_EQ(written("train").size(), 1);
}

TEST_F(CocoDir, CrowdsAreWhatIsMarkedAsOne) {
  write_image("a.png");
  const std::string box = R"("image_id": 1, "category_id": 7, "bbox": [20, 10, 100, 50])";
  for (const char* none : {"0", "\"0\"", "null", "false", "0.0"}) {
    const std::string file =
        write("train.json", test::coco("a.png", "{" + box + ", \"iscrowd\": " + none + "}"));
    EXPECT_EQ(convert({file}).splits[0].num_boxes, 1) << none;
  }
  write_image("b.png");
  for (const char* crowd : {"1", "\"1\"", "true"}) {
    const std::string file =
        write("train.json",
              R"({"images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
            "categories": [{"id": 7, "name": "cat"}], "annotations": [{)" +
                  box + "}, {" + box + ", \"iscrowd\": " + crowd +
                  R"(}, {"image_id": 2, "category_id": 7, "bbox": [1, 1, 9, 9], "iscrowd": )" +
                  crowd + "}]}");
    const WrittenSet result = convert({file});
    EXPECT_EQ(result.splits[0].num_boxes, 1) << crowd;
    EXPECT_EQ(test::noted(result, "crowds, which are no objects"), 2);
    EXPECT_EQ(test::records_lost(result, reason::kCrowdsOnly), 1);
  }
}

TEST_F(CocoDir, OtherFormsAreRefusedInOneSentence) {
  for (const char* text :
       {R"([{"image": "a.png", "label": [{"x": 1, "rectanglelabels": ["a"]}], "annotator": 1}])",
        R"([{"id": 1, "data": {"image": "a"}, "annotations": [{"result": []}]}])",
        R"({"classes": ["cat"], "labels": {"a": [{"label": 0, "bounding_box": [0, 0, 1, 1]}]}})",
        R"({"metainfo": {}, "data_list": [{"img_path": "a.png", "instances": []}]})",
        R"({"images": [], "annotations": [{"image_id": 1, "caption": "a"}]})",
        R"([{"image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4], "score": 0.5}])",
        R"({"imagePath": "a.png", "shapes": []})"}) {
    const Problem problem = test::problem_of([&] { convert({write("x.json", text)}); });
    for (const char* word : {"from-coco", "from-labelme", "Label Studio", "datum convert"})
      EXPECT_NE(problem.fix.find(word), std::string::npos) << problem.fix;
  }
}

// Panoptic files have COCO's lists, and segments in place of boxes.
TEST_F(CocoDir, AnAnnotationWithoutABoxLeavesOutItsImage) {
  write_image("a.png");
  const std::string file = write("train.json", test::coco("a.png", R"({"image_id": 1,
      "segments_info": [{"category_id": 7, "bbox": [1, 1, 9, 9]}]})"));
  EXPECT_NE(test::problem_of([&] { convert({file}); }).what.find(reason::text_of(reason::kNoBox)),
            std::string::npos);
}

TEST_F(CocoDir, IdsMayBeTextsAndOutlinesGiveMissingBoxes) {
  write_image("a.png");
  convert({write("train.json", R"({"images": [{"id": "im-1", "file_name": "a.png"}],
    "categories": [{"id": "c", "name": "cat"}], "annotations": [
    {"image_id": "im-1", "category_id": "c",
     "segmentation": [[20, 10, 120, 10], [70, 60, 20, 30]]}]})")});
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{100, 100, 600, 600}}));
}

TEST_F(CocoDir, ARotatedBoxIsLostByNameWhereverItsAngleIsWritten) {
  write_image("a.png");
  for (const std::string turn : {R"("attributes": {"rotation": 90.0})", R"("rotation": 90.0)",
                                 R"("angle": -0.5)", R"("attributes": {"angle": "30"})"}) {
    const std::string file = write(
        "train.json",
        test::coco("a.png", R"({"image_id": 1, "category_id": 7, "bbox": [50, 40, 100, 20], )" +
                                turn + "}"));
    EXPECT_NE(test::problem_of([&] { convert({file}); }).what.find("a rotated box"),
              std::string::npos)
        << turn;
  }
}

TEST_F(CocoDir, AnAnnotationWithTwoNamesIsLostByName) {
  write_image("a.png");
  const auto with_name = [&](const std::string& name) {
    return convert({write("train.json", R"({"images": [{"id": 1, "file_name": "a.png"}],
          "categories": [{"id": 7, "name": "cat"}], "annotations": [{"image_id": 1,
          "category_id": 7, "bbox": [5, 4, 10, 20], "category_name": ")" +
                                            name + "\"}]}")});
  };
  EXPECT_EQ(with_name("cat").num_records(), 1);
  EXPECT_NE(test::problem_of([&] { with_name("dog"); }).what.find("has two names"),
            std::string::npos);
}

TEST_F(CocoDir, BoxesOfCornersAreRefusedUntilTheyAreNamed) {
  write_image("a.png");
  const std::string file =
      write("train.json",
            test::coco("a.png", R"({"image_id": 1, "category_id": 7, "bbox": [120, 60, 180, 90]},
                             {"image_id": 1, "category_id": 7, "bbox": [20, 10, 190, 95]})"));
  EXPECT_NE(test::problem_of([&] { convert({file}); }).fix.find("--boxes xyxy"), std::string::npos);
  convert({file}, {.boxes = BoxForm::kCorners});
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{600, 600, 900, 900}, {100, 100, 950, 950}}));
}

TEST_F(CocoDir, PromptsListTheClassesAndSomeThatAreAbsent) {
  std::string images, annotations;
  for (int i = 0; i < 200; ++i) {
    const std::string name = std::to_string(i) + ".png";
    write_image(name);
    images += std::string(i > 0 ? "," : "") + R"({"id": )" + std::to_string(i) +
              R"(, "file_name": ")" + name + "\"}";
    for (const char* id : {"1", "3", "2", "4"}) {
      if (i > 0 && (id[0] == '2' || id[0] == '4')) continue;  // once, so that they are classes
      annotations += (annotations.empty() ? "" : ",") + std::string(R"({"image_id": )") +
                     std::to_string(i) + R"(, "category_id": )" + id +
                     R"(, "bbox": [20, 10, 100, 50]})";
    }
  }
  const std::string file = write(
      "train.json", R"({"images": [)" + images + R"(], "annotations": [)" + annotations +
                        R"(], "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"},
                                             {"id": 3, "name": "bird"},
                                             {"id": 4, "name": "fish"},
                                             {"id": 5, "name": "Background"}]})");
  convert({file}, {.prompt_classes = true});
  EXPECT_NE(written("train").samples()[1].prompt.find("image: cat, bird. "), std::string::npos);
  convert({file}, {.prompt_classes = true, .negatives = 0.2});
  int num_absent = 0;
  const Dataset train = written("train");
  for (const Sample& sample : train.samples()) {
    EXPECT_LT(sample.prompt.find("cat"), sample.prompt.find("bird"));
    num_absent += sample.prompt.find("dog") != std::string::npos;
    num_absent += sample.prompt.find("fish") != std::string::npos;
    EXPECT_EQ(sample.prompt.find("Background"), std::string::npos) << "it has no annotation";
  }
  // a fifth of the listed names: half a name for every two
  EXPECT_NEAR(num_absent, 100, 25);
}

TEST_F(CocoDir, WrongImagesNameTheOptionAndAnExample) {
  const std::string file = write("set/train.json", test::coco("flower.png"));
  write_image("photos/flwer.png");
  const std::string photos = path("photos");
  const Problem wrong = test::problem_of([&] { convert({file}, {.images_dir = photos}); });
  EXPECT_EQ(wrong.where, out() + "/train.jsonl");
  EXPECT_NE(wrong.what.find("flower.png: looked for it in " + photos), std::string::npos)
      << wrong.what;
  write_image("photos/deep/flower.png");
  const Problem absent = test::problem_of([&] { convert({file}); });
  EXPECT_NE(absent.fix.find("--images"), std::string::npos) << absent.fix;
  convert({file}, {.images_dir = photos});
  EXPECT_EQ(written("train").size(), 1);
}

TEST_F(CocoDir, PathsHoldWhereTheOutputIsALink) {
  write_image("set/a.png");
  const std::string file = write("set/train.json", test::coco("a.png"));
  std::filesystem::create_directories(path("far/away/data"));
  std::filesystem::create_directory_symlink(path("far/away/data"), path("out"));
  convert({file});
  EXPECT_EQ(written("train").size(), 1);  // checks that the image is there
}

TEST_F(CocoDir, TheBoxModeOfDetectron2SaysWhatTheNumbersAre) {
  write_image("a.png");
  const auto with_mode = [](const std::string& box, const std::string& mode) {
    return test::coco("a.png", R"({"image_id": 1, "category_id": 7, "bbox": )" + box +
                                   R"(, "bbox_mode": )" + mode + "}");
  };
  for (const auto& [box, mode] :
       {std::pair("[20, 10, 120, 60]", "0"), {"[20, 10, 100, 50]", "1"}}) {
    convert({write("train.json", with_mode(box, mode))});
    EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{100, 100, 600, 600}})) << mode;
  }
  const std::string turned = write("train.json", with_mode("[20, 10, 100, 50]", "4"));
  EXPECT_NE(test::problem_of([&] { convert({turned}); }).what.find("bbox_mode"), std::string::npos);
  const std::string dicts =
      write("dicts.json",
            R"([{"file_name": "a.png", "annotations": [{"bbox": [1, 2, 3, 4], "bbox_mode": 0,
                         "category_id": 0}]}])");
  const Problem problem = test::problem_of([&] { convert({dicts}); });
  EXPECT_NE(problem.fix.find("datum convert"), std::string::npos) << problem.fix;
}

}  // namespace rematch
