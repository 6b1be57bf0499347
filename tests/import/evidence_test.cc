// Marks, outlines, sizes and counts that annotations state besides names and boxes.
#include <functional>

#include "import/import_dir.h"

namespace rematch {
namespace {

class Evidence : public test::ImportDir {
 protected:
  Evidence() { write_image("set/a.png"); }
  WrittenSet convert_coco(const std::string& members, const ImportOptions& options = {}) const {
    const std::string file =
        write("set/train.json",
              test::coco("a.png", R"({"image_id": 1, "category_id": 7, "bbox": [1, 1, 50, 50]}, )"
                                  R"({"image_id": 1, "category_id": 7, )" +
                                      members + "}"));
    return convert_set(read_coco_files({file}, options), options);
  }
  WrittenSet convert_csv(const std::string& column, const std::string& value) const {
    return convert_set(read_csv_files(
        {write("set/train.csv", "filename,x1,y1,x2,y2,class," + column +
                                    "\na.png,1,1,50,50,cat,\na.png,9,9,60,60,cat," + value + "\n")},
        {}));
  }
  WrittenSet convert_labelme(const std::string& members) const {
    const std::string shape =
        R"({"label": "cat", "shape_type": "rectangle", "points": [[1, 1], [50, 50]])";
    write("labelme/a.json", R"({"imagePath": "../set/a.png", "shapes": [)" + shape + "}, " + shape +
                                ", " + members + "}]}");
    return convert_set(read_labelme_dir({path("labelme")}, {}));
  }
  WrittenSet convert_voc(const std::string& inside) const {
    const std::string object =
        "<object><name>cat</name><bndbox><xmin>20</xmin><ymin>10</ymin><xmax>120</xmax>"
        "<ymax>60</ymax></bndbox>";
    write("voc/a.xml", "<annotation><filename>../set/a.png</filename>" + object + "</object>" +
                           object + inside + "</object></annotation>");
    return convert_set(read_voc_dir({path("voc")}, {}));
  }
};

constexpr const char* kBox = R"("bbox": [20, 10, 100, 50], )";

}  // namespace

TEST_F(Evidence, AMarkToIgnoreIsReadInEveryFormHoweverItIsWritten) {
  constexpr const char *kCrowds = "crowds, which are no objects",
                       *kIgnored = "objects marked to be ignored, left out";
  for (const char* value : {"1", "1.0", "2", "true", "\"1\"", "\"True\"", "\"yes\""}) {
    std::string text = value;
    std::erase(text, '"');
    EXPECT_EQ(test::noted(convert_coco(std::string(kBox) + "\"ignore\": " + value), kIgnored), 1)
        << value;
    EXPECT_EQ(test::noted(convert_coco(std::string(kBox) + "\"iscrowd\": " + value), kCrowds), 1)
        << value;
    EXPECT_EQ(test::noted(convert_labelme(std::string("\"ignore\": ") + value), kIgnored), 1);
    EXPECT_EQ(test::noted(convert_csv("iscrowd", text), kCrowds), 1) << text;
    EXPECT_EQ(test::noted(convert_csv("ignore", text), kIgnored), 1) << text;
    EXPECT_EQ(test::noted(convert_voc("<ignore>" + text + "</ignore>"), kIgnored), 1) << text;
  }
  for (const char* value : {"0", "-1", "no"}) {
    EXPECT_EQ(convert_csv("IsGroupOf", value).splits[0].num_boxes, 2) << value;
    EXPECT_EQ(convert_voc(std::string("<ignore>") + value + "</ignore>").splits[0].num_boxes, 2);
  }
}

TEST_F(Evidence, MarksInAttributesAndFlagsCount) {
  constexpr const char *kIgnored = "objects marked to be ignored, left out",
                       *kDifficult = "objects marked difficult, kept";
  for (const char* holder : {"attributes", "flags"}) {
    const auto marked = [&](const std::string& mark) {
      return "\"" + std::string(holder) + "\": {\"occluded\": false, \"" + mark + "\": true}";
    };
    EXPECT_EQ(test::noted(convert_coco(kBox + marked("ignore")), kIgnored), 1) << holder;
    EXPECT_EQ(test::noted(convert_coco(kBox + marked("difficult")), kDifficult), 1) << holder;
    EXPECT_EQ(test::noted(convert_labelme(marked("ignore")), kIgnored), 1) << holder;
    EXPECT_EQ(test::noted(convert_labelme(marked("difficult")), kDifficult), 1) << holder;
    EXPECT_EQ(
        test::noted(convert_set(read_hf_files(
                        {write("set/train.jsonl",
                               R"({"file_name": "a.png", "objects": [{"bbox": [1, 1, 40, 30],)"
                               R"("label": "cat"}, {"bbox": [20, 10, 40, 30], "label": "cat",)" +
                                   marked("ignore") + "}]}")},
                        {})),
                    kIgnored),
        1)
        << holder;
  }
  const std::string masked =
      std::string(kBox) + R"("iscrowd": 1, "attributes": {"occluded": false)";
  EXPECT_EQ(test::noted(convert_coco(masked + R"(, "ignore": true})"), kIgnored), 1);
  EXPECT_EQ(convert_coco(masked + "}").splits[0].num_boxes, 2) << "a mask of CVAT";
  EXPECT_EQ(test::noted(convert_voc("<attributes><attribute><name>ignore</name><value>True</value>"
                                    "</attribute></attributes>"),
                        kIgnored),
            1);
  EXPECT_EQ(test::noted(convert_csv("difficult", "1"), kDifficult), 1);
}

TEST_F(Evidence, AnAngleIsANumber) {
  for (const char* angle : {"30", "\"30 deg\"", "-0.5"})
    EXPECT_NE(test::problem_of([&] {
                convert_coco(kBox + std::string("\"angle\": ") + angle, {.strict = true});
              }).what.find("a rotated box"),
              std::string::npos)
        << angle;
  for (const char* angle : {"0", "\"0.0\"", "\"front\"", "null", "\"\""})
    EXPECT_EQ(convert_coco(kBox + std::string("\"angle\": ") + angle).num_records(), 1) << angle;
}

TEST_F(Evidence, ScoresOfPredictionsAreCountedInEveryForm) {
  constexpr const char* kScored = "objects with a score (predictions?), kept as truth";
  EXPECT_EQ(test::noted(convert_coco(std::string(kBox) + "\"score\": 0.7"), kScored), 1);
  EXPECT_EQ(test::noted(convert_coco(std::string(kBox) + "\"score\": 1"), kScored), 0);
  EXPECT_EQ(test::noted(convert_labelme("\"score\": 0.7"), kScored), 1);
  EXPECT_EQ(test::noted(convert_labelme("\"score\": null"), kScored), 0) << "X-AnyLabeling's own";
  EXPECT_EQ(test::noted(convert_csv("confidence", "0.7"), kScored), 1);
  EXPECT_EQ(test::noted(convert_csv("confidence", ""), kScored), 0);
  EXPECT_EQ(
      test::noted(convert_set(read_hf_files(
                      {write("set/train.jsonl",
                             R"({"file_name": "a.png", "objects": [{"bbox": [20, 10, 40, 30], )"
                             R"("label": "cat", "score": 0.7}]})")},
                      {})),
                  kScored),
      1);
}

TEST_F(Evidence, ABoxThatItsOutlineContradictsIsNotTaughtUntilItsFormIsSaid) {
  const std::string corners =
      R"("bbox": [60, 10, 100, 50], "segmentation": [[60, 10, 100, 10, 100, 50, 60, 50]])";
  EXPECT_NE(test::problem_of([&] {
              convert_coco(corners);
            }).what.find(reason::text_of(reason::kOtherOutline)),
            std::string::npos);
  convert_coco(corners, {.boxes = BoxForm::kSides});
  EXPECT_EQ(bins()[1], (std::vector<int>{300, 100, 800, 600})) << "as they are";
  convert_coco(corners, {.boxes = BoxForm::kCorners});
  EXPECT_EQ(bins()[1], (std::vector<int>{300, 100, 500, 500}));
  const std::string rounded =
      R"("bbox": [60, 10, 6, 6], "segmentation": [[61, 11, 64, 11, 64, 15, 61, 15]])";
  EXPECT_EQ(convert_coco(rounded).num_records(), 1) << "a small one, two pixels off";
}

TEST_F(Evidence, TwoPointsAreCornersInEveryForm) {
  convert_coco(R"("bbox": [[20, 10], [60, 40]])");
  EXPECT_EQ(bins()[1], (std::vector<int>{100, 100, 300, 400}));
  convert_set(
      read_hf_files({write("set/train.jsonl",
                           R"({"file_name": "a.png", )"
                           R"("objects": [{"bbox": [["20", 10], [60, 40]], "label": "cat"}]})")},
                    {}));
  EXPECT_EQ(bins()[0], (std::vector<int>{100, 100, 300, 400}));
}

TEST_F(Evidence, SizesUnderOtherNamesAreComparedToo) {
  const auto hf = [this](const std::string& sides) {
    return read_hf_files(
        {write("set/train.jsonl", R"({"file_name": "a.png", "objects": [], )" + sides + "}")}, {});
  };
  const std::string mask =
      std::string(kBox) + R"("segmentation": {"counts": "abc", "size": [100, )";
  EXPECT_EQ(convert_coco(mask + "200]}").num_records(), 1);
  EXPECT_EQ(convert_set(hf(R"("image_width": 200, "img_height": "100")")).num_records(), 1);
  for (const std::function<void()>& convert : std::vector<std::function<void()>>{
           [&] { convert_coco(mask + "400]}"); }, [&] { convert_set(hf(R"("image_width": 400)")); },
           [&] { convert_set(hf(R"("img_height": "50")")); },
           [&] { convert_csv("img_width", "400"); }})
    EXPECT_NE(test::problem_of(convert).what.find(reason::kImageSize), std::string::npos);
}

TEST_F(Evidence, AnOutlineWithAPointThatIsNotCountedIsNotReadInPart) {
  const std::string three = "<x1>20</x1><y1>10</y1><x2>120</x2><y2>10</y2><x3>120</x3><y3>60</y3>";
  EXPECT_EQ(convert_voc("<polygon>" + three + "</polygon>").num_records(), 1);
  for (const char* other : {"<x5>20</x5><y5>60</y5>", "<x0>20</x0><y0>60</y0>"})
    EXPECT_NE(test::problem_of([&] {
                convert_voc("<polygon>" + three + other + "</polygon>");
              }).what.find("<polygon> has more"),
              std::string::npos)
        << other;
}

TEST_F(Evidence, NamesOfAnotherNumberThanTheYamlSaysAreRefused) {
  write("set/a.txt", "1 0.5 0.5 0.2 0.2\n");
  const auto read = [this](const std::string& names, const ImportOptions& options = {}) {
    return read_yolo_set({write("set/data.yaml", "train: .\nnc: 3\nnames: [" + names + "]\n")},
                         options);
  };
  EXPECT_NE(test::problem_of([&] { read("cat dog, bird"); }).what.find("and there are 2 names"),
            std::string::npos);
  convert_set(read("cat, dog, bird"));
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "dog");
  convert_set(read("cat dog, bird", {.names = "a,b"}));
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "b") << "--names counts";
}

}  // namespace rematch
