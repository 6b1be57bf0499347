#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "data/dataset.h"
#include "draw/canvas.h"
#include "draw/encode.h"
#include "import/foreign.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

// A directory with two images of 200 x 100 pixels.
class ImportTest : public testing::Test {
 protected:
  ImportTest() {
    const std::string png = encode_png(Canvas(200, 100, kWhite).image());
    for (const char* name :
         {"images/a.png", "images/b.png", "images/train/a.png", "images/val/b.png"})
      directory_.write(name, png);
  }
  std::string out() const { return directory_.file("out"); }
  Dataset load(const std::string& split) const {
    return Dataset::load(out() + "/" + split + ".jsonl", {});
  }
  ImportOptions images() const { return {.images_dir = directory_.file("images")}; }

  // One image of 200 x 100 pixels.
  WrittenSet write_objects(std::vector<ForeignObject> objects) {
    const ForeignImage image{.path = directory_.file("images/a.png"),
                             .objects = std::move(objects)};
    return write_records({.splits = {{"train", {image}}}, .notes = {}, .sources = {}}, out());
  }
  // A directory of VOC with the annotation of one image.
  void write_voc(const std::string& object, const std::string& name = "a") {
    directory_.write(
        "Annotations/" + name + ".xml",
        "<annotation><filename>a.png</filename><object>" + object + "</object></annotation>");
  }
  void expect_voc_refused(const std::string& word) {
    const UserError error =
        test::catch_user_error([&] { read_voc_dir(directory_.path(), images()); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
  void expect_yolo_refused(const std::string& yaml, const std::string& word) {
    const std::string path = directory_.write("set.yaml", yaml);
    const UserError error = test::catch_user_error([&] { read_yolo_set(path, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }

  test::TempDir directory_;
};

constexpr const char* kCoco = R"({
  "images": [{"id": 1, "file_name": "a.png", "width": 200, "height": 100}, {"id": 2, "file_name": "b.png", "width": 200, "height": 100},
             {"id": 3, "file_name": "gone.png", "width": 10, "height": 10}],
  "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": " big dog\n"}],
  "annotations": [
    {"image_id": 1, "category_id": 7, "bbox": [20, 10, 100, 50], "iscrowd": 0, "segmentation": [[20, 10, 120, 10, 120, 60]]},
    {"image_id": 1, "category_id": 9, "bbox": [150, 50, 100, 100], "iscrowd": 0, "segmentation": {"counts": [1], "size": [100, 200]}},
    {"image_id": 1, "category_id": 9, "bbox": [0, 0, 10, 10], "iscrowd": 1},
    {"image_id": 2, "category_id": 7, "bbox": [10, 10, 0, 5]}
  ]})";

}  // namespace

TEST(Import, ABinIsAThousandthOfTheSideRoundedAndNeverBeyondTheLast) {
  EXPECT_EQ(to_bin(0, 640), 0);
  EXPECT_EQ(to_bin(320, 640), 500);
  EXPECT_EQ(to_bin(640, 640), 999);
  EXPECT_EQ(to_bin(-3, 640), 0);
  EXPECT_EQ(to_bin(1, 640), 2);  // 1.5625
}

TEST_F(ImportTest, CocoKeepsBoxesAndCountsWhatItLeavesOut) {
  const ForeignSet set =
      read_coco_files({directory_.write("instances_train.json", kCoco)}, images());
  const WrittenSet written = write_records(set, out());
  const Dataset dataset = load("train");
  ASSERT_EQ(dataset.size(), 2);
  const Sample& first = dataset.samples()[0];
  ASSERT_EQ(first.objects.size(), 2u);
  EXPECT_EQ(first.objects[0].desc, "cat");
  EXPECT_EQ(first.objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(first.objects[1].desc, "big dog");
  EXPECT_EQ(first.objects[1].geometry.bins, (std::vector<int>{750, 500, 999, 999}));
  EXPECT_EQ(written.notes.at("left out: crowds"), 1);
  EXPECT_EQ(written.notes.at("left out: boxes without area"), 1);
  EXPECT_EQ(written.notes.at("boxes clipped to the image"), 1);
  EXPECT_EQ(written.notes.at("left out: images that cannot be read"), 1);
}

TEST_F(ImportTest, CocoOutlinesBecomePolygonsWhenAsked) {
  ImportOptions options = images();
  options.polygons = true;
  const ForeignSet set =
      read_coco_files({directory_.write("instances_train.json", kCoco)}, options);
  write_records(set, out());
  const Sample sample = load("train").samples()[0];
  EXPECT_EQ(sample.objects[0].geometry.kind, GeometryKind::kPoly);
  EXPECT_EQ(sample.objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 100, 600, 600}));
  EXPECT_EQ(sample.objects[1].geometry.kind, GeometryKind::kBbox2d);
  EXPECT_EQ(set.notes.at("masks replaced by their boxes"), 1);
}

TEST_F(ImportTest, AFileThatIsNotCocoNamesWhatIsMissing) {
  const std::string path = directory_.write("x.json", R"({"images": []})");
  const UserError error = test::catch_user_error([&] { read_coco_files({path}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find("categories"), std::string::npos);
}

TEST_F(ImportTest, ACocoAnnotationOfAnUnknownCategoryIsABadEntryOfAGoodFile) {
  std::string text = kCoco;
  text.replace(text.find("\"category_id\": "), 16, "\"category_id\": 5");
  const UserError error = test::catch_user_error(
      [&] { read_coco_files({directory_.write("instances_val.json", text)}, {}); });
  const Problem& problem = error.problems().front();
  EXPECT_EQ(problem.error, "an entry of this COCO file is invalid");
  EXPECT_EQ(problem.fix, "correct or remove that entry");
}

TEST_F(ImportTest, ImagesElsewhereAreAnErrorThatNamesTheOption) {
  const ForeignSet set = read_coco_files({directory_.write("instances_val.json", kCoco)},
                                         {.images_dir = directory_.file("nowhere")});
  const UserError error = test::catch_user_error([&] { write_records(set, out()); });
  EXPECT_NE(error.problems()[0].fix.find("--images"), std::string::npos);
}

TEST_F(ImportTest, VocCountsPixelsFromOneAndKeepsItsSplits) {
  const auto annotation = [&](const std::string& name) {
    directory_.write("Annotations/" + name + ".xml",
                     "<annotation><filename>" + name +
                         ".png</filename><size><width>200</width><height>100</height></"
                         "size><object><name>cat</name>"
                         "<difficult>1</difficult><bndbox><xmin>21</xmin><ymin>11</ymin><xmax>120</"
                         "xmax><ymax>60</ymax>"
                         "</bndbox></object></annotation>");
  };
  annotation("a");
  annotation("b");
  directory_.write("ImageSets/Main/train.txt", "a\n");
  directory_.write("ImageSets/Main/val.txt", " b\r\n\n");
  const WrittenSet written = write_records(read_voc_dir(directory_.path(), images()), out());
  ASSERT_EQ(written.splits.size(), 2u);
  EXPECT_EQ(load("val").samples()[0].objects[0].geometry.bins,
            (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(written.notes.at("objects marked difficult, kept"), 2);
}

TEST_F(ImportTest, VocWithoutAnnotationsOrWithBrokenXmlIsAnError) {
  EXPECT_EQ(test::catch_user_error([&] { read_voc_dir(directory_.path(), {}); }).kind(),
            ErrorKind::kData);
  directory_.write("Annotations/a.xml", "<annotation><object>");
  EXPECT_EQ(test::catch_user_error([&] { read_voc_dir(directory_.path(), {}); }).kind(),
            ErrorKind::kData);
}

TEST_F(ImportTest, YoloReadsBoxesAndOutlinesAsFractions) {
  const std::string yaml = directory_.write(
      "set.yaml", "path: .\ntrain: images/train\nval: images/val\nnames: {0: cat, 1: dog}\n");
  directory_.write("labels/train/a.txt", "0 0.35 0.35 0.5 0.5\n1 0.1 0.1 0.6 0.1 0.6 0.6\n");
  directory_.write("images/val/empty.png", encode_png(Canvas(200, 100, kWhite).image()));
  directory_.write("labels/val/empty.txt", "");
  const WrittenSet written = write_records(read_yolo_set(yaml, {}), out());
  const Sample sample = load("train").samples()[0];
  ASSERT_EQ(sample.objects.size(), 2u);
  EXPECT_EQ(sample.objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(sample.objects[1].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(written.notes.at("images without a label file, imported as empty scenes"), 1);
  EXPECT_TRUE(load("val").samples()[0].objects.empty());
}

TEST_F(ImportTest, YoloRefusesAClassWithoutANameAndALineThatIsNoShape) {
  const std::string yaml =
      directory_.write("set.yaml", "path: .\ntrain: images/train\nnames: [cat]\n");
  directory_.write("labels/train/a.txt", "3 0.5 0.5 0.5 0.5\n");
  EXPECT_NE(
      std::string(test::catch_user_error([&] { read_yolo_set(yaml, {}); }).what()).find("a.txt:1"),
      std::string::npos);
  directory_.write("labels/train/a.txt", "0 0.5 0.5\n");
  EXPECT_NE(
      std::string(test::catch_user_error([&] { read_yolo_set(yaml, {}); }).what()).find("0.5 0.5"),
      std::string::npos);
}

TEST_F(ImportTest, SwiftPairsNamesWithBoxesInPixelsOrFractions) {
  const std::string path = directory_.write(
      "train.jsonl",
      R"({"messages": [], "images": ["a.png"], "objects": {"ref": ["cat", "dog"], "bbox": [[20, 10, 120, 60], [0, 0, 200, 100]]}}
{"messages": [], "images": ["b.png"], "objects": {"ref": ["cat"], "bbox": [[0.1, 0.1, 0.6, 0.6], [0, 0, 0.5, 0.5], [0.3, 0.3]], "bbox_type": "norm1"}}
)");
  const WrittenSet written = write_records(read_swift_files({path}, images()), out());
  const Dataset dataset = load("train");
  EXPECT_EQ(dataset.samples()[0].objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(dataset.samples()[1].objects.size(), 2u);
  EXPECT_EQ(dataset.samples()[1].objects[0].geometry, dataset.samples()[0].objects[0].geometry);
  EXPECT_EQ(written.notes.at("left out: points"), 1);
}

TEST_F(ImportTest, SwiftNamesTheLineWhoseNamesAndBoxesDoNotPair) {
  const std::string path = directory_.write(
      "train.jsonl",
      R"({"images": ["a.png"], "objects": {"ref": ["a", "b"], "bbox": [[1, 2, 3, 4]]}})");
  EXPECT_NE(std::string(test::catch_user_error([&] { read_swift_files({path}, images()); }).what())
                .find("train.jsonl:1"),
            std::string::npos);
  const std::string bad = directory_.write("bad.jsonl", "{}\n");
  EXPECT_EQ(test::catch_user_error([&] { read_swift_files({bad}, images()); }).kind(),
            ErrorKind::kData);
}

TEST_F(ImportTest, YoloFindsItsLabelsFromWithinItsOwnDirectory) {
  directory_.write("set.yaml", "train: images/train\nnames: [cat]\n");
  directory_.write("labels/train/a.txt", "0 0.35 0.35 0.5 0.5\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  const ForeignSet set = read_yolo_set("set.yaml", {});
  std::filesystem::current_path(before);
  EXPECT_EQ(set.splits.at("train")[0].objects.size(), 1u);
}

TEST_F(ImportTest, YoloRefusesASplitWithoutAnyLabelFile) {
  directory_.write("labels/train/a.txt", "");
  expect_yolo_refused("train: images/train\nval: images/val\nnames: [cat]\n",
                      "none of 1 image has a label file");
}

TEST_F(ImportTest, YoloRefusesLabelsInPixels) {
  directory_.write("labels/train/a.txt", "0 0.5 0.5 0.1 0.1\n0 120 60 50 50\n");
  expect_yolo_refused("train: images/train\nnames: [cat]\n", "look like pixels");
}

TEST_F(ImportTest, YoloCountsImagesThatCannotBeReadHere) {
  directory_.write("images/train/c.bmp", "BM");
  directory_.write("labels/train/a.txt", "0 0.5 0.5 0.1 0.1\n");
  const WrittenSet written = write_records(
      read_yolo_set(directory_.write("set.yaml", "train: images/train\nnames: [cat]\n"), {}),
      out());
  EXPECT_EQ(written.notes.at("left out: images that cannot be read"), 1);
}

TEST_F(ImportTest, YoloRefusesAYamlOfWrongTypes) {
  for (const char* names : {"{cat: 0}", "[[a], b]"})
    expect_yolo_refused(std::string("train: images/train\nnames: ") + names, "conversion");
  expect_yolo_refused("path: [x]\ntrain: images/train\nnames: [cat]\n", "conversion");
  expect_yolo_refused("train: {a: b}\nnames: [cat]\n", "conversion");
}

TEST_F(ImportTest, SwiftLeavesOutRecordsWithoutBoxes) {
  const std::string path = directory_.write("train.jsonl", R"({"messages": [], "images": ["a.png"]}
{"images": ["a.png"], "objects": {"ref": ["cat"], "bbox": null}}
{"images": ["a.png"], "objects": {"ref": ["cat"], "bbox": [[3, 4]]}}
{"images": ["b.png"], "objects": {"ref": [], "bbox": []}}
)");
  const WrittenSet written = write_records(read_swift_files({path}, images()), out());
  EXPECT_EQ(written.notes.at("left out: records without boxes"), 3);
  ASSERT_EQ(load("train").size(), 1);
  EXPECT_TRUE(load("train").samples()[0].objects.empty());
}

TEST_F(ImportTest, SwiftRefusesBoxesThatAreNoListAndSharesThatArePixels) {
  for (const char* objects :
       {R"({"ref": ["a"], "bbox": {"a": 1}})", R"({"ref": ["a"], "bbox": 5})",
        R"({"ref": ["a"], "bbox": [[1, 2, 30, 40]], "bbox_type": "norm1"})"}) {
    const std::string path = directory_.write(
        "train.jsonl", std::string(R"({"images": ["a.png"], "objects": )") + objects + "}\n");
    const UserError error = test::catch_user_error([&] { read_swift_files({path}, images()); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find("objects.bbox"), std::string::npos) << error.what();
  }
}

TEST_F(ImportTest, ASplitNeverReplacesTheFileItWasReadFrom) {
  const std::string line =
      R"({"images": ["a.png"], "objects": {"ref": ["cat"], "bbox": [[20, 10, 120, 60]]}})";
  const std::string path = directory_.write("out/train.jsonl", line);
  const ForeignSet set = read_swift_files({path}, images());
  const UserError error = test::catch_user_error([&] { write_records(set, out() + "/../out"); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_EQ(read_file(path), line);
}

TEST_F(ImportTest, VocRefusesCornersThatAreNoNumbers) {
  const std::string rest = "<ymin>1</ymin><xmax>20</xmax><ymax>20</ymax></bndbox>";
  for (const char* corner :
       {"<xmin>nan</xmin>", "<xmin>abc</xmin>", "<xmin>3 4</xmin>", "<xmin>inf</xmin>", ""}) {
    write_voc(std::string("<name>cat</name><bndbox>") + corner + rest);
    expect_voc_refused("<xmin>");
  }
}

TEST_F(ImportTest, VocTakesNamesWithBlanksAndNamesAListThatNamesNoAnnotation) {
  write_voc(
      "<name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>20</xmax><ymax>20</ymax></bndbox>",
      "plain photo 1");
  directory_.write("ImageSets/Main/train.txt", "plain photo 1 \n");
  EXPECT_EQ(read_voc_dir(directory_.path(), images()).splits.at("train").size(), 1u);
  directory_.write("ImageSets/Main/train.txt", "plain photo 1\nplain photo 2\n");
  expect_voc_refused("train.txt:2");
}

TEST_F(ImportTest, ObjectsWithoutAUsableNameAreLeftOutAndCounted) {
  const WrittenSet written =
      write_objects({{.desc = "", .x0 = 1, .y0 = 1, .x1 = 50, .y1 = 50, .ring = {}},
                     {.desc = " \b", .x0 = 1, .y0 = 1, .x1 = 50, .y1 = 50, .ring = {}},
                     {.desc = "caf\xE9", .x0 = 1, .y0 = 1, .x1 = 50, .y1 = 50, .ring = {}}});
  EXPECT_EQ(written.notes.at("left out: objects without a usable name"), 3);
  EXPECT_EQ(written.notes.at("empty scenes: all objects of the image were left out"), 1);
  EXPECT_TRUE(load("train").samples()[0].objects.empty());
}

TEST_F(ImportTest, EachReasonToLeaveABoxOutIsNamed) {
  const WrittenSet written =
      write_objects({{.desc = "a", .x0 = std::nan(""), .y0 = 1, .x1 = 50, .y1 = 50, .ring = {}},
                     {.desc = "a", .x0 = 50, .y0 = 1, .x1 = 1, .y1 = 50, .ring = {}},
                     {.desc = "a", .x0 = 300, .y0 = 1, .x1 = 350, .y1 = 50, .ring = {}},
                     {.desc = "a", .x0 = 30, .y0 = 1, .x1 = 30, .y1 = 50, .ring = {}}});
  EXPECT_EQ(written.notes.at("left out: boxes whose corners are not finite"), 1);
  EXPECT_EQ(written.notes.at("left out: boxes with swapped corners or negative width or height"),
            1);
  EXPECT_EQ(written.notes.at("left out: boxes outside their image"), 1);
  EXPECT_EQ(written.notes.at("left out: boxes without area"), 1);
}

TEST_F(ImportTest, CocoRefusesAnIdThatTwoImagesHave) {
  const std::string path = directory_.write("train.json", R"({"categories": [], "annotations": [],
    "images": [{"id": 1, "file_name": "a.png"}, {"id": 1, "file_name": "b.png"}]})");
  EXPECT_NE(std::string(test::catch_user_error([&] { read_coco_files({path}, images()); }).what())
                .find("images[1].id"),
            std::string::npos);
}

TEST_F(ImportTest, ASplitWithoutAUsableImageIsAnErrorAndNothingIsWritten) {
  const ForeignImage found{.path = directory_.file("images/a.png"), .objects = {}},
      gone{.path = "gone.png", .objects = {}};
  const UserError error = test::catch_user_error([&] {
    write_records({.splits = {{"train", {found}}, {"val", {gone}}}, .notes = {}, .sources = {}},
                  out());
  });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].where.find("val.jsonl"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out() + "/train.jsonl"));
}

TEST_F(ImportTest, AForeignFileGivenToTrainNamesTheCommand) {
  const std::string coco = directory_.write("instances.json", kCoco);
  EXPECT_NE(std::string(test::catch_user_error([&] { Dataset::load(coco, {}); }).what())
                .find("rematch data from-coco"),
            std::string::npos);
  const std::string swift = directory_.write("s.jsonl", R"({"messages": [], "images": ["a.png"]})");
  EXPECT_NE(std::string(test::catch_user_error([&] { Dataset::load(swift, {}); }).what())
                .find("rematch data from-swift"),
            std::string::npos);
  const std::string yolo = directory_.write("y.yaml", "train: images\nnames: [a]\n");
  EXPECT_NE(std::string(test::catch_user_error([&] { Dataset::load(yolo, {}); }).what())
                .find("rematch data from-yolo"),
            std::string::npos);
  const std::string voc = directory_.write("v.xml", "<annotation></annotation>");
  EXPECT_NE(std::string(test::catch_user_error([&] { Dataset::load(voc, {}); }).what())
                .find("rematch data from-voc"),
            std::string::npos);
}

}  // namespace rematch
