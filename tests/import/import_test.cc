#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "import/import_dir.h"
#include "learn/data/dataset.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/draw/canvas.h"
#include "tools/draw/encode.h"
#include "tools/import/foreign.h"
#include "tools/import/reasons.h"

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

  // A directory of VOC with the annotation of one image.
  void write_voc(const std::string& object, const std::string& name = "a") {
    directory_.write(
        "Annotations/" + name + ".xml",
        "<annotation><filename>a.png</filename><object>" + object + "</object></annotation>");
  }
  void expect_yolo_refused(const std::string& yaml, const std::string& word) {
    const std::string path = directory_.write("set.yaml", yaml);
    const UserError error = test::catch_user_error([&] { read_yolo_set({path}, {}); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }

  test::TempDir directory_;
};

constexpr const char* kCoco = R"({
  "images": [{"id": 1, "file_name": "a.png", "width": 200, "height": 100},
             {"id": 2, "file_name": "b.png", "width": 200, "height": 100},
             {"id": 3, "file_name": "gone.png", "width": 10, "height": 10}],
  "categories": [{"id": 7, "name": "cat"}, {"id": 9, "name": " big dog\n"}],
  "annotations": [
    {"image_id": 1, "category_id": 7, "bbox": [20, 10, 100, 50], "iscrowd": 0,
     "segmentation": [[20, 10, 120, 10, 120, 60]]},
    {"image_id": 1, "category_id": 9, "bbox": [150, 50, 100, 100], "iscrowd": 0,
     "segmentation": {"counts": [1], "size": [100, 200]}},
    {"image_id": 1, "category_id": 9, "bbox": [0, 0, 10, 10], "iscrowd": 1},
    {"image_id": 2, "category_id": 7, "bbox": [10, 10, 0, 5]}
  ]})";

}  // namespace

TEST_F(ImportTest, CocoKeepsBoxesAndCountsWhatItLeavesOut) {
  ForeignSet set = read_coco_files({directory_.write("instances_train.json", kCoco)}, images());
  const WrittenSet written = write_records(std::move(set), out());
  const Dataset dataset = load("train");
  ASSERT_EQ(dataset.size(), 1);
  const Sample& first = dataset.samples()[0];
  ASSERT_EQ(first.objects.size(), 2u);
  EXPECT_EQ(first.objects[0].desc, "cat");
  EXPECT_EQ(first.objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(first.objects[1].desc, "big dog");
  EXPECT_EQ(first.objects[1].geometry.bins, (std::vector<int>{750, 500, 999, 999}));
  EXPECT_EQ(test::noted(written, "crowds, which are no objects"), 1);
  EXPECT_EQ(test::records_lost(written, reason::kNoArea), 1);
  EXPECT_EQ(test::noted(written, "objects clipped to the image"), 1);
  EXPECT_EQ(test::records_lost(written, reason::kImageMissing), 1);
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
  EXPECT_EQ(set.ledger.notes().at("masks replaced by their boxes"), 1);
}

TEST_F(ImportTest, AFileThatIsNotCocoNamesWhatIsMissing) {
  const std::string path = directory_.write("x.json", R"({"images": []})");
  const UserError error = test::catch_user_error([&] { read_coco_files({path}, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find("categories"), std::string::npos);
}

TEST_F(ImportTest, ACocoAnnotationOfAnUnknownCategoryLosesItsImage) {
  std::string text = kCoco;
  text.replace(text.find("\"category_id\": "), 16, "\"category_id\": 5");
  text.replace(text.find("[10, 10, 0, 5]"), 14, "[10, 10, 9, 5]");
  const WrittenSet written = write_records(
      read_coco_files({directory_.write("instances_val.json", text)}, images()), out());
  EXPECT_EQ(test::records_lost(written, reason::kNotListed), 1);
  EXPECT_EQ(load("val").size(), 1);
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
  const WrittenSet written = write_records(read_voc_dir({directory_.path()}, images()), out());
  ASSERT_EQ(written.splits.size(), 2u);
  EXPECT_EQ(load("val").samples()[0].objects[0].geometry.bins,
            (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(test::noted(written, "objects marked difficult, kept"), 2);
}

TEST_F(ImportTest, VocWithoutAnnotationsOrWithBrokenXmlIsAnError) {
  EXPECT_EQ(test::catch_user_error([&] { read_voc_dir({directory_.path()}, {}); }).kind(),
            ErrorKind::kData);
  directory_.write("Annotations/a.xml", "<annotation><object>");
  const std::string out = directory_.file("out");
  EXPECT_EQ(test::catch_user_error([&] {
              write_records(read_voc_dir({directory_.path()}, {}), out);
            }).kind(),
            ErrorKind::kData);
}

TEST_F(ImportTest, YoloReadsBoxesAndOutlinesAsFractions) {
  const std::string yaml = directory_.write(
      "set.yaml", "path: .\ntrain: images/train\nval: images/val\nnames: {0: cat, 1: dog}\n");
  directory_.write("labels/train/a.txt", "0 0.35 0.35 0.5 0.5\n1 0.1 0.1 0.6 0.1 0.6 0.6\n");
  directory_.write("images/val/empty.png", encode_png(Canvas(200, 100, kWhite).image()));
  directory_.write("labels/val/empty.txt", "");
  const WrittenSet written = write_records(read_yolo_set({yaml}, {}), out());
  const ImportOptions empty{.missing_labels_are_empty = true};
  const Sample sample = load("train").samples()[0];
  ASSERT_EQ(sample.objects.size(), 2u);
  EXPECT_EQ(sample.objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(sample.objects[1].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(test::records_lost(written, reason::kNoLabelFile), 1);
  ASSERT_EQ(load("val").size(), 1);
  EXPECT_TRUE(load("val").samples()[0].objects.empty());
  EXPECT_EQ(test::noted(write_records(read_yolo_set({yaml}, empty), out()),
                        "images without a label file, imported as empty scenes"),
            1);
  EXPECT_EQ(load("val").size(), 2);
}

TEST_F(ImportTest, SwiftPairsNamesWithBoxesInPixelsOrFractions) {
  const std::string path = directory_.write(
      "train.jsonl", R"({"messages": [], "images": ["a.png"], "objects": {"ref": ["cat", "dog"], )"
                     R"("bbox": [[20, 10, 120, 60], [0, 0, 200, 100]]}}
{"messages": [], "images": ["b.png"], "objects": {"ref": ["cat"], )"
                     R"("bbox": [[0.1, 0.1, 0.6, 0.6], [0, 0, 0.5, 0.5]], "bbox_type": "norm1"}}
{"messages": [], "images": ["b.png"], "objects": {"ref": ["cat"], )"
                     R"("bbox": [[0.1, 0.1, 0.6, 0.6], [0.3, 0.3]], "bbox_type": "norm1"}}
)");
  const WrittenSet written = write_records(read_chat_files({path}, images()), out());
  const Dataset dataset = load("train");
  ASSERT_EQ(dataset.size(), 2);
  EXPECT_EQ(dataset.samples()[0].objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(dataset.samples()[1].objects.size(), 2u);
  EXPECT_EQ(dataset.samples()[1].objects[0].geometry, dataset.samples()[0].objects[0].geometry);
  EXPECT_EQ(test::records_lost(written, reason::kNoBox), 1);
}

TEST_F(ImportTest, YoloFindsItsLabelsFromWithinItsOwnDirectory) {
  directory_.write("set.yaml", "train: images/train\nnames: [cat]\n");
  directory_.write("labels/train/a.txt", "0 0.35 0.35 0.5 0.5\n");
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(directory_.path());
  const ForeignSet set = read_yolo_set({"set.yaml"}, {});
  std::filesystem::current_path(before);
  EXPECT_EQ(set.splits.at("train")[0].objects.size(), 1u);
}

TEST_F(ImportTest, YoloRefusesASplitWithoutAnyLabelFile) {
  directory_.write("labels/train/a.txt", "");
  expect_yolo_refused("train: images/train\nval: images/val\nnames: [cat]\n",
                      "none of 1 image has a label file");
}

TEST_F(ImportTest, YoloCountsImagesThatCannotBeReadHere) {
  directory_.write("images/train/c.bmp", "BM");
  directory_.write("labels/train/c.txt", "0 0.5 0.5 0.1 0.1\n");
  directory_.write("labels/train/a.txt", "0 0.5 0.5 0.1 0.1\n");
  const WrittenSet written = write_records(
      read_yolo_set({directory_.write("set.yaml", "train: images/train\nnames: [cat]\n")}, {}),
      out());
  EXPECT_EQ(test::records_lost(written, reason::kImageUnreadable), 1);
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
  const WrittenSet written = write_records(read_chat_files({path}, images()), out());
  EXPECT_EQ(written.ledger.num_records_lost(), 3);
  ASSERT_EQ(load("train").size(), 1);
  EXPECT_TRUE(load("train").samples()[0].objects.empty());
}

TEST_F(ImportTest, ASplitNeverReplacesTheFileItWasReadFrom) {
  const std::string line =
      R"({"images": ["a.png"], "objects": {"ref": ["cat"], "bbox": [[20, 10, 120, 60]]}})";
  const std::string path = directory_.write("out/train.jsonl", line);
  const ForeignSet set = read_chat_files({path}, images());
  const UserError error = test::catch_user_error([&] { write_records(set, out() + "/../out"); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_EQ(read_file(path), line);
}

TEST_F(ImportTest, VocTakesNamesWithBlanksAndNamesAListThatNamesNoAnnotation) {
  write_voc(
      "<name>cat</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>20</xmax><ymax>20</ymax></bndbox>",
      "plain photo 1");
  directory_.write("ImageSets/Main/train.txt", "plain photo 1 \n");
  EXPECT_EQ(read_voc_dir({directory_.path()}, images()).splits.at("train").size(), 1u);
  directory_.write("ImageSets/Main/train.txt", "plain photo 1\nplain photo 2\n");
  const ForeignSet set = read_voc_dir({directory_.path()}, images());
  EXPECT_EQ(set.splits.at("train").size(), 1u);
  EXPECT_NE(set.ledger.records().at("a name in a list without an XML").first.find("train.txt:2"),
            std::string::npos);
}

TEST_F(ImportTest, ASplitWithoutAUsableImageIsAnErrorAndNothingIsWritten) {
  const ForeignImage found{.name = directory_.file("images/a.png")}, gone{.name = "gone.png"};
  const UserError error = test::catch_user_error(
      [&] { write_records({.splits = {{"train", {found}}, {"val", {gone}}}}, out()); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].where.find("val.jsonl"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(out() + "/train.jsonl"));
}

TEST_F(ImportTest, AForeignFileGivenToTrainNamesTheCommands) {
  for (const std::string& path :
       {directory_.write("instances.json", kCoco),
        directory_.write("s.jsonl", R"({"messages": [], "images": ["a.png"]})"),
        directory_.write("y.yaml", "train: images\nnames: [a]\n"),
        directory_.write("v.xml", "<annotation></annotation>")}) {
    const Problem problem = test::problem_of([&] { Dataset::load(path, {}); });
    for (const char* command : {"rematch data from-coco", "from-swift", "from-yolo", "from-voc"})
      EXPECT_NE(problem.fix.find(command), std::string::npos) << path;
  }
}

}  // namespace rematch
