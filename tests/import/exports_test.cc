// Exports of labelling programs whose files are easily misread.
#include <functional>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "import/import_dir.h"

namespace rematch {
namespace {

class Exports : public test::ImportDir {
 protected:
  /// Names of the objects of the first record, joined by commas.
  std::string names(const std::string& split = "train") const {
    std::string text;
    const Dataset dataset = written(split);
    for (const SceneObject& object : dataset.samples()[0].objects)
      text += (text.empty() ? "" : ",") + object.desc;
    return text;
  }
  void write_yolo(const std::string& folder, const std::string& label) const {
    write_image(folder + "a.png");
    write(folder + "a.txt", label + "\n");
  }
  WrittenSet convert_csv(const std::string& text, const ImportOptions& options = {}) const {
    return convert_set(read_csv_files({write("train.csv", text)}, options), options);
  }
  WrittenSet convert_voc(const std::string& xml) const {
    write("voc/a.xml", "<annotation><filename>a.png</filename>" + xml + "</annotation>");
    return convert_set(read_voc_dir({path("voc")}, {}));
  }
};

constexpr const char* kVocObject =
    "<object><name>cat</name><bndbox><xmin>20</xmin><ymin>10</ymin><xmax>120</xmax>"
    "<ymax>60</ymax></bndbox></object>";

}  // namespace

TEST_F(Exports, LabelStudioNumbersItsClassesInNotes) {
  write_yolo("set/", "0 0.5 0.5 0.2 0.2");
  write("set/classes.txt", "safe\nunsafe\n");
  write("set/notes.json", R"({"categories": [{"id": "1", "name": "safe"},
                                             {"id": "0", "name": "unsafe"}]})");
  convert_set(read_yolo_set({path("set")}, {}));
  EXPECT_EQ(names(), "unsafe");
}

TEST_F(Exports, NamesThatDifferBetweenFoldersAreRefused) {
  write_yolo("set/train/", "0 0.5 0.5 0.2 0.2");
  write_yolo("set/val/", "0 0.5 0.5 0.2 0.2");
  write("set/train/classes.txt", "cat\ndog\n");
  write("set/val/classes.txt", "dog\ncat\n");
  const Problem problem = test::problem_of([&] { read_yolo_set({path("set")}, {}); });
  EXPECT_NE(problem.what.find("differ"), std::string::npos) << problem.what;
}

TEST_F(Exports, AFileOfNamesIsReadInItsForm) {
  write_yolo("set/", "1 0.5 0.5 0.2 0.2");
  for (const auto& [name, text] : std::vector<std::pair<const char*, const char*>>{
           {"n.txt", "cat\ndog\n"},
           {"n.txt", "0,cat\n1,dog\n"},
           {"n.txt", "0: cat\n1: dog\n"},
           {"n.csv", "id,name\n0,cat\n1,dog\n"},
           {"n.txt", "2 wheeler\ndog\n"},
           {"n.yaml", "path: .\nnames:\n  0: cat\n  1: dog\n"},
           {"n.json", R"(["cat", "dog"])"},
           {"n.json", R"({"categories": [{"id": 1, "name": "dog"}, {"id": 0, "name": "cat"}]})"}}) {
    const ImportOptions options{.names = write(name, text)};
    convert_set(read_yolo_set({path("set")}, options), options);
    EXPECT_EQ(names(), "dog") << text;
  }
  for (const char* text :
       {"item {\n  id: 1\n", "# label:color_rgb:parts:actions\ncat:1,2,3::\n",
        "data/a.jpg\ndata/b.jpg\n", "classes = 2\n", "0,cat\n0,dog\n", "cat,0\ndog,1\n"}) {
    const ImportOptions options{.names = write("n.txt", text)};
    EXPECT_NE(test::problem_of([&] {
                read_yolo_set({path("set")}, options);
              }).error.find("not a list of class names"),
              std::string::npos)
        << text;
  }
}

TEST_F(Exports, MasksThatCvatMarksAsCrowdsAreObjects) {
  write_image("a.png");
  const std::string mask =
      R"({"image_id": 1, "category_id": 7, "bbox": [20, 10, 100, 50], "iscrowd": 1,
          "segmentation": {"counts": [0, 10], "size": [100, 200]})";
  convert_set(read_coco_files(
      {write("train.json", test::coco("a.png", mask + R"(, "attributes": {"occluded": false}})"))},
      {}));
  EXPECT_EQ(names(), "cat");
}

TEST_F(Exports, AFlatOutlineOfCocoIsOneRing) {
  write_image("a.png");
  const std::string file =
      write("train.json", test::coco("a.png", R"({"image_id": 1, "category_id": 7,
                                            "segmentation": [20, 10, 120, 10, 120, 60]})"));
  convert_set(read_coco_files({file}, {}));
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{100, 100, 600, 600}}));
}

TEST_F(Exports, ACategoryThatOnlyGroupsOthersIsNoClass) {
  write_image("a.png");
  write_image("b.png");
  const std::string file = write("train.json", R"({"images": [{"id": 1, "file_name": "a.png"},
        {"id": 2, "file_name": "b.png"}], "annotations": [
        {"image_id": 1, "category_id": 1, "bbox": [20, 10, 100, 50]},
        {"image_id": 2, "category_id": 2, "bbox": [20, 10, 100, 50]}], "categories": [
        {"id": 0, "name": "fish", "supercategory": "none"},
        {"id": 1, "name": "carp", "supercategory": "fish"},
        {"id": 2, "name": "pike", "supercategory": "fish"}]})");
  const ImportOptions options{.prompt_classes = true, .negatives = 0.9};
  convert_set(read_coco_files({file}, options), options);
  EXPECT_NE(written("train").samples()[0].prompt.find("image: carp, pike."), std::string::npos);
}

TEST_F(Exports, ACocoWithWordsOfOtherProgramsIsCoco) {
  write_image("a.png");
  const std::string file =
      write("train.json", R"({"images": [{"id": 1, "file_name": "a.png"}], "annotations": [
        {"image_id": 1, "category_id": 1, "bbox": [20, 10, 100, 50]}], "categories": [
        {"id": 0, "name": "samples"}, {"id": 1, "name": "labels"}]})");
  convert_set(read_coco_files({file}, {}));
  EXPECT_EQ(names(), "labels");
}

TEST_F(Exports, ObjectsOfAnotherXmlAreNoEmptyScene) {
  write_image("voc/a.png");
  for (const char* xml :
       {"<objects><object><possibleresult><name>A</name></possibleresult></object></objects>",
        "<Object><Name>cat</Name><Bndbox><Xmin>1</Xmin></Bndbox></Object>"})
    EXPECT_NE(
        test::problem_of([&] { convert_voc(xml); }).what.find(reason::text_of(reason::kNoBox)),
        std::string::npos)
        << xml;
  EXPECT_FALSE(convert_voc("").ledger.has_losses());
}

TEST_F(Exports, LabelStudioCountsPixelsFrom0) {
  write_image("voc/a.png");
  convert_voc(std::string("<owner><name>Label Studio</name></owner>") + kVocObject);
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{100, 100, 600, 600}}));
  convert_voc(kVocObject);
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{95, 90, 600, 600}}));
}

TEST_F(Exports, TrainvalIsTraining) {
  for (const char* name : {"a", "b"}) {
    write_image("voc/JPEGImages/" + std::string(name) + ".png");
    write("voc/Annotations/" + std::string(name) + ".xml",
          "<annotation>" + std::string(kVocObject) + "</annotation>");
  }
  write("voc/ImageSets/Main/trainval.txt", "a\n");
  write("voc/ImageSets/Main/test.txt", "b\n");
  convert_set(read_voc_dir({path("voc")}, {}));
  EXPECT_EQ(written("train").size(), 1);
  EXPECT_EQ(written("test").size(), 1);
}

TEST_F(Exports, AnnotationsInDeeperFoldersAreRead) {
  for (const char* name : {"voc/a", "voc/s/b"}) {
    write_image(std::string(name) + ".png");
    write(std::string(name) + ".xml", "<annotation>" + std::string(kVocObject) + "</annotation>");
  }
  EXPECT_FALSE(convert_set(read_voc_dir({path("voc")}, {})).ledger.has_losses());
  EXPECT_EQ(written("train").size(), 2);
}

TEST_F(Exports, ASplitTakesNoPictureOfAnother) {
  write_image("set/images/train/1.png");
  write("set/annotations/instances_train.json", test::coco("1.png"));
  write("set/annotations/instances_val.json", test::coco("1.png"));
  const auto convert = [&] { return convert_set(read_coco_files({path("set/annotations")}, {})); };
  EXPECT_EQ(test::problem_of(convert).error, "no record of this split can be used");
  write_image("set/images/val/1.png");
  EXPECT_FALSE(convert().ledger.has_losses());
  EXPECT_NE(written("val").samples()[0].image_paths[0].find("val/1.png"), std::string::npos);
}

TEST_F(Exports, ColumnsOfCornersAndAnglesAreNotIgnored) {
  write_image("a.png");
  EXPECT_NE(test::problem_of([&] {
              convert_csv("filename,x1,y1,x2,y2,x3,y3,x4,y4,class\na.png,1,1,9,1,9,9,1,9,t\n");
            }).fix.find("the box around them"),
            std::string::npos);
  EXPECT_NE(test::problem_of([&] {
              convert_csv("filename,xmin,ymin,xmax,ymax,angle,class\na.png,1,1,9,9,30,t\n");
            }).what.find("rotated box"),
            std::string::npos);
  convert_csv("id,filename,xmin,ymin,xmax,ymax,label,label_name\n7,a.png,20,10,120,60,1,cat\n");
  EXPECT_EQ(names(), "cat");
}

TEST_F(Exports, OpenImagesKnowsNoAbsentClass) {
  write_image("a.png");
  write_image("b.png");
  const std::string rows =
      "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\n"
      "a,x,/m/01,1,0.1,0.6,0.1,0.6\nb,x,/m/02,1,0.1,0.6,0.1,0.6\n";
  const ImportOptions options{
      .names = write("n.csv", "/m/01,Cat\n/m/02,Dog\n"), .prompt_classes = true, .negatives = 0.9};
  convert_csv(rows, options);
  EXPECT_NE(written("train").samples()[0].prompt.find("image: Cat."), std::string::npos);
  EXPECT_NE(test::problem_of([&] { convert_csv(rows); }).fix.find("--names"), std::string::npos);
}

TEST_F(Exports, AQuoteThatDoesNotEndSwallowsNoRow) {
  write_image("a.png");
  const Problem problem = test::problem_of([&] {
    convert_csv("filename,xmin,ymin,xmax,ymax,class\na.png,1,1,20,20,\"cat\na.png,1,1,9,9,dog\n");
  });
  EXPECT_NE(problem.what.find("a quote in it does not end"), std::string::npos) << problem.what;
  EXPECT_NE(problem.where.find(":2"), std::string::npos) << problem.where;
}

TEST_F(Exports, NumbersThatWordsNameAreNotReadInTheirOrder) {
  write_image("a.png");
  for (const char* box : {"{'xmin': 1, 'xmax': 20, 'ymin': 1, 'ymax': 20}", "1px 2px 20px 30px"}) {
    const auto convert = [&] {
      convert_csv("image,bbox,label\na.png,\"" + std::string(box) + "\",cat\n");
    };
    EXPECT_NE(test::problem_of(convert).what.find(reason::text_of(reason::kNoBox)),
              std::string::npos)
        << box;
  }
}

TEST_F(Exports, AColumnTwiceIsRefused) {
  write_image("a.png");
  const auto convert = [&] {
    convert_csv("filename,xmin,xmin,ymin,xmax,ymax,class\na.png,1,9,1,20,20,cat\n");
  };
  EXPECT_NE(test::problem_of(convert).what.find("\"xmin\" twice"), std::string::npos);
  EXPECT_NE(test::problem_of([&] {
              convert_csv("filename,xmin,ymin,xmax,ymax,class\na.png,1,1,20,20,cat,big\n");
            }).what.find("more cells"),
            std::string::npos)
      << "a name with a comma";
}

TEST_F(Exports, ARowWithTwoNamesIsLeftOut) {
  write_image("a.png");
  const std::string header = "filename,xmin,ymin,xmax,ymax,class,label\na.png,20,10,120,60,";
  const Problem problem = test::problem_of([&] { convert_csv(header + "cat,dog\n"); });
  EXPECT_NE(problem.what.find("different names"), std::string::npos) << problem.what;
  EXPECT_NE(problem.fix.find("keep the column"), std::string::npos) << problem.fix;
  const ImportOptions named{.names = "dog,cat"};
  EXPECT_NE(test::problem_of([&] { convert_csv(header + "0,cat\n", named); }).what.find("names"),
            std::string::npos);
  for (const char* names : {"cat,cat", "cat,", ",cat", "cat,7", "1,cat"}) {
    convert_csv(header + names + "\n", std::string(names) == "1,cat" ? named : ImportOptions());
    EXPECT_EQ(this->names(), "cat") << names;
  }
  EXPECT_NE(test::problem_of([&] {
              convert_csv("filename,xmin,ymin,xmax,ymax,class,label\na.png,,,,,,dog\n");
            }).what.find(reason::text_of(reason::kNoBox)),
            std::string::npos)
      << "no empty scene";
}

TEST_F(Exports, WhatIsMarkedToBeIgnoredIsNoObject) {
  write_image("a.png");
  const std::string box = R"({"image_id": 1, "category_id": 7, "bbox": [20, 10, 100, 50])";
  const std::string file =
      write("train.json", test::coco("a.png", box + "}, " + box + R"(, "ignore": 1})"));
  const WrittenSet result = convert_set(read_coco_files({file}, {}));
  EXPECT_EQ(result.splits[0].num_boxes, 1);
  EXPECT_EQ(test::noted(result, "objects marked to be ignored, left out"), 1);
}

TEST_F(Exports, NamesThatAreNotUtf8AreNamedAsSuch) {
  write_yolo("set/", "0 0.5 0.5 0.2 0.2");
  write("set/classes.txt", "\xb0\xb2\n");
  write("a.csv", "filename,xmin,ymin,xmax,ymax,class\na.png,1,1,9,9,\xb0\xb2\n");
  for (const std::function<void()>& read : std::vector<std::function<void()>>{
           [&] { read_yolo_set({path("set")}, {}); }, [&] { read_csv_files({path("a.csv")}, {}); }})
    EXPECT_NE(test::problem_of(read).fix.find("iconv"), std::string::npos);
}

// The commands of docs/data.md for other forms: datum writes COCO, and from-coco reads it.
TEST_F(Exports, WhatDatumaroWritesIsRead) {
  const std::string page = read_file(test::source_path("docs/data.md"));
  for (const char* line : {"datum convert -i DIR -if FORM -f coco -o coco -- --save-media",
                           "rematch data from-coco coco --out data"})
    EXPECT_NE(page.find(line), std::string::npos) << line;
  write_image("coco/images/train/a.png");
  write_image("coco/images/val/b.png");
  write("coco/annotations/instances_train.json", test::coco("a.png"));
  write("coco/annotations/instances_val.json", test::coco("b.png"));
  write("coco/annotations/labels_train.json", R"({"annotations": [], "images": []})");
  convert_set(read_coco_files({path("coco")}, {}));
  EXPECT_EQ(written("train").size(), 1);
  EXPECT_EQ(written("val").size(), 1);
}

}  // namespace rematch
