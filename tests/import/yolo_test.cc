// What a YOLO data set's YAML, folders and label files may look like.
#include <filesystem>

#include "import/import_dir.h"

namespace rematch {
namespace {

constexpr const char* kYaml = "train: images/train\nnames: [cat, dog]\n";
constexpr const char* kBox = "0 0.35 0.35 0.5 0.5\n";
const std::vector<int> kBins = {100, 100, 600, 600};

class YoloDir : public test::ImportDir {
 protected:
  YoloDir() { write_image("images/train/a.png"); }
  WrittenSet convert(const std::string& yaml, const std::string& labels) {
    write("labels/train/a.txt", labels);
    return write_records(read_yolo_set(write("set.yaml", yaml), {}), out());
  }
  void expect_refused(const std::string& labels, const std::string& word,
                      const std::string& yaml = kYaml) {
    const UserError error = test::catch_user_error([&] { convert(yaml, labels); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
  }
};

}  // namespace

TEST_F(YoloDir, AByteOrderMarkIsNoPartOfTheFirstLine) {
  convert(kYaml, "\xEF\xBB\xBF" + std::string(kBox));
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kBins});
}

TEST_F(YoloDir, UTF16IsAnError) {
  expect_refused(std::string("\xFF\xFE") + std::string("0\0 \0", 4), "UTF-16");
  expect_refused(std::string("0\0 \0000\0.\0005\0", 10), "a.txt:1");
}

TEST_F(YoloDir, EveryLineThatIsNotBlankIsAnObjectOrAnError) {
  expect_refused("cat .5 .5 .2 .2\n", "numbers only");
  expect_refused("0 .5 .5 .2 .2\nx\n", "a.txt:2");
  expect_refused("0 .5 .5 .2 nan\n", "numbers only");
  expect_refused("0 .5 .5 .2 .2 # cat\n", "numbers only");
  convert(kYaml, std::string("\n \t\r\n") + kBox + "\r\n");
  EXPECT_EQ(bins().size(), 1u);
}

TEST_F(YoloDir, AClassIsAWholeNumber) {
  expect_refused("1.7 .5 .5 .2 .2\n", "class 1.7");
  expect_refused("-0.5 .5 .5 .2 .2\n", "class -0.5");
  expect_refused("-1 .5 .5 .2 .2\n", "class -1");
  expect_refused("2 .5 .5 .2 .2\n", "class 2 has no name");
  convert(kYaml, "1.0 .5 .5 .2 .2\n");
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "dog");
}

TEST_F(YoloDir, KeyPointsAreNoOutline) {
  const std::string yaml = std::string(kYaml) + "kpt_shape: [4, 3]\n";
  const std::string points = " 0.2 0.2 2 0.8 0.2 2 0.8 0.8 1 0.2 0.8 0\n";
  const WrittenSet result = convert(yaml, "0 0.35 0.35 0.5 0.5" + points);
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kBins});
  EXPECT_EQ(result.notes.at("objects imported without their keypoints"), 1);
  expect_refused("0 0.35 0.35 0.5 0.5 0.2 0.2\n", "kpt_shape", yaml);
  expect_refused(kBox, "kpt_shape", std::string(kYaml) + "kpt_shape: [4]\n");
  // without kpt_shape, visibilities of 2 are no shares
  expect_refused("0 0.35 0.35 0.5 0.5" + points, "look like pixels");
}

TEST_F(YoloDir, FoldersBehindLinksAreReadOnce) {
  write_image("elsewhere/images/b.png");
  write("elsewhere/labels/b.txt", kBox);
  std::filesystem::create_directory_symlink(path("elsewhere/images"), path("images/train/more"));
  std::filesystem::create_directory_symlink(path("elsewhere/images"), path("images/train/again"));
  std::filesystem::create_directory_symlink(path("images/train"), path("images/train/circle"));
  std::filesystem::create_symlink("gone.png", path("images/train/lost.png"));
  std::filesystem::create_symlink("itself", path("images/train/itself"));
  const WrittenSet result = convert(kYaml, kBox);
  EXPECT_EQ(written("train").size(), 2);
  EXPECT_EQ(result.notes.at("left out: images that cannot be read"), 1);
}

TEST_F(YoloDir, RoboflowsFoldersLieNextToTheYaml) {
  write_image("train/images/a.png");
  write_image("valid/images/b.png");
  write("train/labels/a.txt", kBox);
  write("valid/labels/b.txt", kBox);
  const WrittenSet result = convert(
      "train: ../train/images\nval: ../valid/images\ntest: ../test/images\nnames: [cat]\n", "");
  EXPECT_EQ(written("train").size(), 1);
  EXPECT_EQ(written("val").size(), 1);
  EXPECT_EQ(result.notes.count("left out: the split test, which the YAML lists but does not exist"),
            1u);
}

TEST_F(YoloDir, AMissingFolderOfTrainIsAnErrorThatNamesImages) {
  expect_refused(kBox, "--images", "train: ../nowhere/images\nnames: [cat]\n");
}

TEST_F(YoloDir, AYamlWithoutNamesIsAnErrorThatSaysSo) {
  expect_refused(kBox, "it has no \"names\"", "train: images/train\n");
  expect_refused(kBox, "neither a list nor a mapping", "train: images/train\nnames: cat\n");
}

TEST_F(YoloDir, ADirectoryStandsForItsOnlyYaml) {
  convert(kYaml, kBox);
  EXPECT_EQ(read_yolo_set(dir_.path(), {}).splits.at("train").size(), 1u);
  write("other.yml", kYaml);
  const Problem problem = test::problem_of([&] { read_yolo_set(dir_.path(), {}); });
  EXPECT_NE(problem.fix.find("other.yml, "), std::string::npos) << problem.fix;
  EXPECT_NE(test::problem_of([&] { read_yolo_set(path("images"), {}); }).what.find("has no YAML"),
            std::string::npos);
}

}  // namespace rematch
