// Records that may be wrong as a whole: left out whatever the options, with the reason.
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "import/import_dir.h"

namespace rematch {
namespace {

class Doubts : public test::ImportDir {
 protected:
  Doubts() { write_image("good.png"); }

  /// A file of COCO whose first image is good, with more images and annotations.
  std::string write_coco(const std::string& images, const std::string& annotations) const {
    return write("train.json",
                 R"({"categories": [{"id": 7, "name": "cat"}], "images": [{"id": 1, "file_name": )"
                 R"("good.png"})" +
                     images + R"(], "annotations": [{"image_id": 1, "category_id": 7, "bbox": )" +
                     "[20, 10, 100, 50]}" + annotations + "]}");
  }
  WrittenSet convert_coco(const std::string& images, const std::string& annotations,
                          const ImportOptions& options = {}) const {
    return convert_set(read_coco_files({write_coco(images, annotations)}, options), options);
  }
  /// The reason why the one annotation of a second image leaves it out.
  std::string reason_of(const std::string& geometry) {
    write_image("bad.png");
    const WrittenSet written =
        convert_coco(R"(, {"id": 2, "file_name": "bad.png"})",
                     R"(, {"image_id": 2, "category_id": 7, )" + geometry + "}");
    return written.ledger.records().empty() ? "" : written.ledger.records().begin()->first;
  }
};

const ImportOptions kDrop{.drop_unreadable = true};

}  // namespace

TEST_F(Doubts, DroppingObjectsKeepsNoRecordThatMayBeWrong) {
  write_image("a.png");
  write_image("b.png");
  const std::string box = R"("category_id": 7, "bbox": [)";
  const WrittenSet two_entries = convert_coco(
      R"(, {"id": 2, "file_name": "a.png"}, {"id": 3, "file_name": "a.png"})",
      R"(, {"image_id": 2, )" + box + R"(1, 1, 9, 9]}, {"image_id": 3, )" + box + "2, 2, 9, 9]}",
      kDrop);
  EXPECT_EQ(test::records_lost(two_entries, reason::kTwoEntries), 2);
  const WrittenSet shared_id =
      convert_coco(R"(, {"id": 2, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"})",
                   R"(, {"image_id": 2, )" + box + "1, 1, 9, 9]}", kDrop);
  EXPECT_EQ(test::records_lost(shared_id, reason::kSharedId), 2);
  const WrittenSet one_file = convert_coco(
      R"(, {"id": 2, "file_name": "x/a.png"}, {"id": 3, "file_name": "y/a.png"})",
      R"(, {"image_id": 2, )" + box + R"(1, 1, 9, 9]}, {"image_id": 3, )" + box + "2, 2, 9, 9]}",
      kDrop);
  EXPECT_EQ(test::records_lost(one_file, reason::kImageAmbiguous), 2);
}

TEST_F(Doubts, ANameWithoutItsEndingIsThatOfOneFile) {
  const std::string voc =
      "<annotation><object><name>cat</name><bndbox><xmin>0</xmin>"
      "<ymin>0</ymin><xmax>50</xmax><ymax>50</ymax></bndbox></object></annotation>";
  write("voc/a.xml", voc);
  write("voc/good.xml", voc);
  write_image("voc/good.png");
  write_image("voc/a.png");
  const auto convert = [&] { return convert_set(read_voc_dir({path("voc")}, {})); };
  EXPECT_FALSE(convert().ledger.has_losses());
  write_image("voc/a.PNG");
  const WrittenSet written = convert();
  EXPECT_EQ(test::records_lost(written, reason::kSeveralFiles), 1);
  EXPECT_NE(written.ledger.fix().find("its folder and ending"), std::string::npos);
}

TEST_F(Doubts, LabelsOfTwoImagesBelongToNeither) {
  for (const char* name : {"images/a.png", "images/a.jpg", "images/b.png"}) write_image(name);
  write("images/b.heic", "a kind that cannot be read leaves the labels to the other");
  write("labels/a.txt", "0 0.5 0.5 0.2 0.2\n");
  write("labels/b.txt", "0 0.5 0.5 0.2 0.2\n");
  const std::string yaml = write("set.yaml", "train: images\nnames: [cat]\n");
  const WrittenSet written = convert_set(read_yolo_set({yaml}, {}), kDrop);
  EXPECT_EQ(test::records_lost(written, reason::kSharedLabels), 2);
  EXPECT_EQ(written.num_records(), 1);
}

TEST_F(Doubts, CornersOfWhichFewLeaveTheirImageAreRefused) {
  // of 200 x 100 pixels; as x, y, width, height one in five ends far outside
  std::string images, annotations;
  for (int i = 0; i < 5; ++i) {
    const std::string name = std::to_string(i) + ".png", id = std::to_string(i + 2);
    write_image(name);
    images += R"(, {"id": )" + id + R"(, "file_name": ")" + name + "\"}";
    annotations += R"(, {"image_id": )" + id + R"(, "category_id": 7, "bbox": )" +
                   (i == 0 ? "[120, 60, 180, 90]}" : "[10, 10, 60, 60]}");
  }
  EXPECT_NE(
      test::problem_of([&] { convert_coco(images, annotations); }).error.find("look like corners"),
      std::string::npos);
  convert_coco(images, annotations, {.boxes = BoxForm::kSides});
  EXPECT_EQ(written("train").size(), 6);
}

TEST_F(Doubts, PixelsOfSmallImagesAreNotThousandths) {
  std::string lines;
  for (int i = 0; i < 8; ++i)
    lines += R"({"image": "good.png", "conversations": [{"from": "human", "value": "Find)" +
             std::to_string(i) +
             R"("}, {"from": "gpt", "value": "[{\"bbox_2d\": [20, 10, 120, 60], \"label\": )"
             R"(\"cat\"}]"}]})"
             "\n";
  const std::string file = write("train.jsonl", lines);
  const auto convert = [&](StockScale scale) {
    const ImportOptions options{.scale = scale};
    convert_set(read_chat_files({file}, options), options);
    return bins();
  };
  EXPECT_NE(test::problem_of([&] { convert({.is_assumed = true}); }).what.find("look like pixels"),
            std::string::npos);
  EXPECT_EQ(convert({}), (std::vector<std::vector<int>>{{20, 10, 120, 60}}));
  EXPECT_EQ(convert({.unit = StockScale::Unit::kFilePixels}),
            (std::vector<std::vector<int>>{{100, 100, 600, 600}}));
}

TEST_F(Doubts, FormsWithoutABoxAreNamedWithTheirFix) {
  for (const auto& [geometry, reason] : std::vector<std::pair<const char*, const char*>>{
           {R"("segmentation": {"counts": "abc", "size": [100, 200]})", reason::kNoBox},
           {R"("keypoints": [10, 10, 2, 20, 20, 2], "num_keypoints": 2)", reason::kNoBox},
           {R"("bbox": [50, 50, 20, 10, 30])", reason::kRotated},
           {R"("bbox": [0, 0, 0, 0])", reason::kNoArea},
           {R"("bbox": [50, 50, 0.05, 20])", reason::kThin}}) {
    EXPECT_EQ(reason_of(geometry), reason);
    const bool has_fix = reason != reason::kThin;
    EXPECT_EQ(!reason::fix_for(reason).empty(), has_fix) << reason;
  }
}

TEST_F(Doubts, AClassThatMayBeThereIsNotListedAsAbsent) {
  write_image("also.png");
  const auto prompt_of = [&](const std::string& more, const std::string& annotation) {
    const std::string file =
        write("train.json", R"({"categories": [{"id": 1, "name": "cat "}, {"id": 2, "name": "dog"},
          {"id": 3, "name": "bird"}], "images": [{"id": 2, "file_name": "also.png"},
          {"id": 1, "file_name": "good.png")" +
                                more + R"(}], "annotations": [{"image_id": 1, "category_id": 1,
          "bbox": [20, 10, 100, 50]}, {"image_id": 2, "category_id": 2, "bbox": [1, 1, 9, 9]},
          {"image_id": 2, "category_id": 3, "bbox": [1, 1, 9, 9]})" +
                                annotation + "]}");
    const ImportOptions options{.drop_unreadable = true, .prompt_classes = true, .negatives = 0.9};
    convert_set(read_coco_files({file}, options), options);
    const std::string prompt = written("train").samples()[1].prompt;
    const size_t begin = prompt.find(": ") + 2;
    return prompt.substr(begin, prompt.find(". ") - begin);
  };
  const std::string dog = R"(, {"image_id": 1, "category_id": 2, "bbox": [1, 1, 50, 50])";
  EXPECT_EQ(prompt_of("", ""), "cat, dog, bird");
  EXPECT_EQ(prompt_of("", dog + R"(, "iscrowd": 1})"), "cat, bird");
  EXPECT_EQ(prompt_of("", R"(, {"image_id": 1, "category_id": 2, "bbox": [1, 1, -5, 50]})"), "cat");
  EXPECT_EQ(prompt_of(R"(, "neg_category_ids": [3], "not_exhaustive_category_ids": [])", ""),
            "cat");
  EXPECT_EQ(prompt_of(R"(, "not_exhaustive_category_ids": [3])", ""), "cat");
}

TEST_F(Doubts, AnUnreadableObjectStaysTheReasonWhenClassesAreListed) {
  write_image("also.png");
  const std::string file = write("train.json", R"({"categories": [{"id": 1, "name": "cat"}],
    "images": [{"id": 1, "file_name": "good.png"}, {"id": 2, "file_name": "also.png"}],
    "annotations": [{"image_id": 1, "category_id": 1, "bbox": [20, 10, 100, 50]},
    {"image_id": 2, "category_id": 1, "segmentation": {"counts": "abc", "size": [100, 200]}}]})");
  const ImportOptions options{.prompt_classes = true, .negatives = 0.5};
  const WrittenSet result = convert_set(read_coco_files({file}, options), options);
  EXPECT_EQ(test::records_lost(result, reason::kNoBox), 1);
}

TEST_F(Doubts, ExchangedSidesAreNamed) {
  write_image("a.png");
  const WrittenSet written =
      convert_coco(R"(, {"id": 2, "file_name": "a.png", "width": 100, "height": 200})",
                   R"(, {"image_id": 2, "category_id": 7, "bbox": [1, 1, 9, 9]})");
  EXPECT_EQ(test::records_lost(written, reason::kImageSize), 1);
  EXPECT_NE(written.ledger.places()[0].find("width and height exchanged"), std::string::npos);
}

}  // namespace rematch
