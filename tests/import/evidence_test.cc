// Outlines and counts that annotations state besides names and boxes.
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
};

}  // namespace

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

TEST_F(Evidence, NamesOfAnotherNumberThanTheYamlSaysAreRefused) {
  write("set/a.txt", "1 0.5 0.5 0.2 0.2\n");
  const auto read = [this](const std::string& names, const ImportOptions& options = {}) {
    return read_yolo_set(write("set/data.yaml", "train: .\nnc: 3\nnames: [" + names + "]\n"),
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
