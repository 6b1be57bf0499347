// CSV files, Hugging Face's metadata.jsonl, and the search for image files.
#include "import/import_dir.h"

namespace rematch {
namespace {

const std::vector<std::vector<int>> kTableBins = {{100, 100, 600, 600}};

const std::string kHeader = "filename,x1,y1,x2,y2,class\n";

class TablesTest : public test::ImportDir {
 protected:
  TablesTest() { write_image("a.png"); }
  WrittenSet csv(const std::string& text, const ImportOptions& options = {}) const {
    return convert_set(read_csv_files({write("train.csv", text)}, options), options);
  }
  WrittenSet hf(const std::string& text, const ImportOptions& options = {}) const {
    return convert_set(read_hf_files({write("train/metadata.jsonl", text)}, options), options);
  }
};

}  // namespace

TEST_F(TablesTest, TheColumnsOfUsualCsvFilesAreKnown) {
  write_image("000a.jpg");
  for (const char* text :
       {"filename,width,height,class,xmin,ymin,xmax,ymax\na.png,200,100,cat,20,10,120,60\n",
        "image_path;xmin;ymin;xmax;ymax;label\r\na.png;20;10;120;60;cat\r\n",
        "image_id,bbox,source,label\na,\"[20, 10, 100, 50]\",x,cat\n",
        "image,label,left,width,top,height\na.png,cat,20,100,10,50\n",
        "\xEF\xBB\xBF\"filename\",x1,y1,x2,y2,class\n\"a.png\",20,10,120,60,cat\n",
        "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax,IsGroupOf\na,x,cat,1,.1,.6,.1,.6,"
        "0\n"}) {
    csv(text);
    EXPECT_EQ(bins(), kTableBins) << text;
    EXPECT_EQ(written("train").samples()[0].objects[0].desc, "cat") << text;
  }
}

TEST_F(TablesTest, ASecondNameOfAnObjectIsCounted) {
  const WrittenSet result =
      hf(R"({"file_name": "../a.png", "objects": {"bbox": [[20, 10, 100, 50]], "label": ["dog"], )"
         R"("category": ["cat"], "category_id": [3]}})");
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "cat");
  EXPECT_EQ(test::noted(result, "other names of named objects (\"label\"), left out"), 1);
}

TEST_F(TablesTest, ARowWithoutABoxIsAnEmptySceneAndABadOneLeavesOutItsImage) {
  write_image("b.png");
  write_image("c.png");
  const WrittenSet result =
      csv(kHeader +
          "a.png,20,10,120,60,cat\nb.png,,,,,\nc.png,1,2,30,40,cat\nc.png,1,x,30,40,cat\n"
          ",1,2,30,40,cat\n");
  EXPECT_EQ(written("train").size(), 2);
  EXPECT_TRUE(written("train").samples()[1].objects.empty());
  EXPECT_EQ(test::records_lost(result, reason::kNoBox), 1);
  EXPECT_EQ(test::records_lost(result, "a row without an image"), 1);
  for (const char* text : {"when,who,what,why\n1,2,3,4\n", "a.png,20,10,120,60,cat\n"})
    EXPECT_EQ(test::problem_of([&] { csv(text); }).error,
              "`rematch data from-csv` cannot read this")
        << text;
}

TEST_F(TablesTest, ARowWithAClassAndNoBoxLeavesOutItsImage) {
  write_image("b.png");
  EXPECT_EQ(
      test::records_lost(csv(kHeader + "a.png,1,2,30,40,cat\na.png,,,,,dog\nb.png,1,2,30,40,cat\n"),
                         reason::kNoBox),
      1);
  EXPECT_EQ(written("train").size(), 1);
}

TEST_F(TablesTest, TheSizeOfAnImageIsNoSideOfABox) {
  write_image("b.png");
  const WrittenSet result =
      csv("filename,x,y,w,h,class,width,height\na.png,20,10,,,cat,200,100\nb.png,,,,,,200,100\n");
  EXPECT_EQ(test::records_lost(result, reason::kNoBox), 1);
  ASSERT_EQ(written("train").size(), 1);
  EXPECT_TRUE(written("train").samples()[0].objects.empty());
}

TEST_F(TablesTest, ANumberWithoutANameAndAFileOfNamesThatIsNotThereAreTold) {
  write_image("b.png");
  EXPECT_EQ(test::records_lost(
                csv(kHeader + "a.png,1,2,30,40,7\nb.png,1,2,30,40,0\n", {.names = "cat,dog"}),
                reason::kUnknownClass),
            1);
  const UserError error = test::catch_user_error(
      [&] { csv(kHeader + "a.png,1,2,30,40,0\n", {.names = "clases.txt"}); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
}

TEST_F(TablesTest, NamesOfOpenImagesComeFromTheirFile) {
  const std::string names = write("names.csv", "/m/01,Cat\n/m/02,Dog\n");
  csv("ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\na,x,/m/02,1,.1,.6,.1,.6\n",
      {.names = names});
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "Dog");
}

TEST_F(TablesTest, ObjectsOfHuggingFaceHaveNamesOrNumbers) {
  write_image("train/b.png");
  for (
      const auto& [text, names] : std::vector<std::pair<std::string, std::string>>{
          {R"({"file_name": "b.png", "objects": {"bbox": [[20, 10, 100, 50]], )"
           R"("category": ["cat"]}})",
           ""},
          {R"({"file_name": "b.png", "objects": {"bbox": [[20, 10, 100, 50]], "categories": [1]}})",
           "dog,cat"},
          {R"({"image": {"path": "b.png"}, "objects": [{"bbox": [20, 10, 100, 50], )"
           R"("label": "cat"}]})",
           ""}}) {
    hf(text, {.names = names});
    EXPECT_EQ(bins(), kTableBins) << text;
    EXPECT_EQ(written("train").samples()[0].objects[0].desc, "cat");
  }
  const Problem unnamed = test::problem_of([&] {
    hf(R"({"file_name": "b.png", "objects": {"bbox": [[20, 10, 100, 50]], "category": [1]}})");
  });
  EXPECT_NE(unnamed.fix.find("--names"), std::string::npos) << unnamed.fix;
  hf(R"({"file_name": "b.png", "objects": {"bbox": [[20, 10, 100, 50], [0, 0, 200, 99]], )"
     R"("category": ["cat", "cat"], "iscrowd": [0, 1]}})");
  EXPECT_EQ(bins(), kTableBins) << "a crowd is no object";
  hf(R"({"file_name": "b.png", "objects": {"bbox": [], "category": []}})");
  EXPECT_TRUE(bins().empty());
}

TEST_F(TablesTest, ImagesAreFoundNearTheAnnotations) {
  write_image("set/images/default/sub dir/a 1.png");
  for (const char* name :
       {"sub dir/a 1.png", "a 1.png", "sub%20dir/a%201.png", "C:\\\\old\\\\a 1.png",
        "/data/upload/a 1.png", "https://host:8080/data/a%201.png", "A 1.PNG",
        "..\\\\..\\\\media\\\\a 1.png", "/data/local-files/?d=photos/a%201.png",
        "https://x.org/a%201.png?size=3", "file:///home/me/a 1.png"}) {
    const std::string file = write("set/annotations/instances_default.json", test::coco(name));
    convert_set(read_coco_files({file}, {.split = "train"}));
    EXPECT_EQ(written("train").size(), 1) << name;
  }
}

TEST_F(TablesTest, AFileThatSeveralNamesMayMeanBelongsToNone) {
  write_image("set/images/other/1.png");
  write_image("set/images/2.png");
  const auto named = [](int id, const char* name) {
    return R"({"id": )" + std::to_string(id) + R"(, "file_name": ")" + name + R"("})";
  };
  const std::string file =
      write("set/train.json", R"({"annotations": [], "categories": [], "images": [)" +
                                  named(1, "some/1.png") + "," + named(2, "other/1.png") + "," +
                                  named(3, "2.png") + "]}");
  const WrittenSet result = convert_set(read_coco_files({file}, {}));
  EXPECT_EQ(test::records_lost(result, reason::kImageAmbiguous), 1);
  EXPECT_EQ(written("train").size(), 2);
}

}  // namespace rematch
