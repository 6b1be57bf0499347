// Forms of a YOLO data set: its YAML, folders and label files.
#include <filesystem>

#include "import/import_dir.h"

namespace rematch {
namespace {

constexpr const char* kYaml = "train: images/train\nnames: [cat, dog]\n";
constexpr const char* kBox = "0 0.35 0.35 0.5 0.5\n";
const std::vector<int> kYoloBins = {100, 100, 600, 600};

class YoloDir : public test::ImportDir {
 protected:
  YoloDir() { write_image("images/train/a.png"); }
  WrittenSet convert(const std::string& yaml, const std::string& labels) {
    write("labels/train/a.txt", labels);
    return convert_set(read_yolo_set({write("set.yaml", yaml)}, {}));
  }
  /// @return the place of the first line that is lost
  std::string lost(const std::string& labels, const std::string& yaml = kYaml) {
    write("labels/train/a.txt", labels);
    const ForeignSet set = read_yolo_set({write("set.yaml", yaml)}, {});
    const std::vector<LostObject>& lost = set.splits.at("train")[0].lost;
    return lost.empty() ? "" : lost[0].reason + ": " + lost[0].place;
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
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kYoloBins});
}

TEST_F(YoloDir, UTF16IsAnError) {
  expect_refused(std::string("\xFF\xFE") + std::string("0\0 \0", 4), "UTF-16");
}

TEST_F(YoloDir, AListOfOtherClassesThanTheYamlIsRefused) {
  for (const char* place : {"classes.txt", "labels/train/classes.txt"}) {
    write(place, "dog\ncat\n");
    expect_refused(kBox, "not those of the YAML");
    write(place, "cat\ndog\n");
    convert(kYaml, kBox);
    EXPECT_EQ(written("train").samples()[0].objects[0].desc, "cat");
  }
}

TEST_F(YoloDir, ADoubleKeyIsNamedAsSuch) {
  expect_refused(kBox, "\"train\" is there twice", std::string("train: images/val\n") + kYaml);
}

TEST_F(YoloDir, ASecondDocumentOfTheYamlIsRefused) {
  expect_refused(kBox, "a second document", kYaml + std::string("---\nnames: [dog, cat]\n"));
  convert(std::string("# of cats\n\n---\n") + kYaml, kBox);
  EXPECT_EQ(bins().size(), 1u);
}

// YAML::LoadAll() would not end.
TEST_F(YoloDir, ATextAfterAQuotedNameIsAnError) {
  expect_refused(kBox, "names is a list", "names: 'a', &b c");
}

TEST_F(YoloDir, ABrokenYamlOfADirectoryIsNamed) {
  write("data.yaml", "train: [images/train\nnames: [cat]\n");
  const UserError error = test::catch_user_error([&] { read_yolo_set({dir_.path()}, {}); });
  EXPECT_EQ(error.problems().front().where, dir_.path() + "/data.yaml");
}

TEST_F(YoloDir, EveryLineThatIsNotBlankIsAnObjectOrLost) {
  for (const char* line : {"cat .5 .5 .2 .2\n", "0 .5 .5 .2 nan\n", "0 .5 .5 .2 .2 # cat\n",
                           "0 .5 .5\n", "1.7 .5 .5 .2 .2\n", "-1 .5 .5 .2 .2\n"})
    EXPECT_NE(lost(line).find("a.txt:1: "), std::string::npos) << line;
  EXPECT_NE(lost("0 .5 .5 .2 .2\n2 .5 .5 .2 .2\n").find("class without a name"), std::string::npos);
  convert(kYaml, std::string("\n \t\r\n") + kBox + "\r\n");
  EXPECT_EQ(bins().size(), 1u);
  convert(kYaml, "1.0 .5 .5 .2 .2\n");
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "dog");
}

TEST_F(YoloDir, ConfidenceAndTrackAreNoCorners) {
  for (const char* line :
       {"0 0.35 0.35 0.5 0.5 0.9\n", "0 0.35 0.35 0.5 0.5 0.9 17\n", "0 0.35 0.35 0.5 0.5 1.57\n",
        "0 0.96 0.79 0.31 0.37 0.08\n", "0 0.1 0.2 0.5 0.2 0.3 1\n"}) {
    EXPECT_EQ(lost(line).find(reason::kOddLine), 0u) << line;
    expect_refused(line, "leave out a confidence or a track");
  }
  convert(kYaml, "0 0.1 0.1 0.6 0.1 0.6 0.6\n");  // a triangle
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{kYoloBins}));
  convert(kYaml, "0 0.1 0.1 0.6 0.1 0.6 0.6 0.1 0.6\n");  // four corners
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{kYoloBins}));
}

TEST_F(YoloDir, AJfifIsAJpeg) {
  write("images/train/b.jfif", encode_jpeg(Canvas(200, 100, kWhite).image(), 90));
  write("labels/train/b.txt", kBox);
  convert(kYaml, kBox);
  EXPECT_EQ(written("train").size(), 2);
}

TEST_F(YoloDir, AListOfNamesIsNotAdvisedWhereOneIsGiven) {
  write("labels/train/a.txt", "5 .5 .5 .2 .2\n");
  const ImportOptions options{.names = write("two.txt", "cat\ndog\n")};
  const Problem problem = test::problem_of(
      [&] { convert_set(read_yolo_set({write("set.yaml", kYaml)}, options), options); });
  EXPECT_NE(problem.fix.find("add its name to those of --names"), std::string::npos);
  EXPECT_NE(test::problem_of([&] {
              read_yolo_set({path("set.yaml")}, {.names = write("empty.txt", "\n")});
            }).what.find("no name"),
            std::string::npos);
}

TEST_F(YoloDir, AKeyTwiceIsRefused) {
  expect_refused(kBox, "twice", std::string(kYaml) + "names: [dog, cat]\n");
}

TEST_F(YoloDir, ALabelFileWithoutAnImageIsCounted) {
  write("labels/train/gone.txt", kBox);
  write("labels/train/notes.txt", "drawn by hand");
  const WrittenSet result = convert(kYaml, kBox);
  EXPECT_EQ(test::records_lost(result, "a label file without an image"), 1);
}

TEST_F(YoloDir, LabelsInPixelsAreRefused) {
  expect_refused("0 120 60 50 50\n0 20 60 50 50\n", "shares of the image");
}

TEST_F(YoloDir, KeyPointsAreNoOutline) {
  const std::string points = " 0.2 0.2 2 0.8 0.2 2 0.8 0.8 1 0.2 0.8 0\n";
  expect_refused("0 0.35 0.35 0.5 0.5" + points, "cut -d",
                 std::string(kYaml) + "kpt_shape: [4, 3]\n");
  convert(kYaml, "0 0.35 0.35 0.5 0.5\n");  // as the advice leaves it
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kYoloBins});
}

TEST_F(YoloDir, ADirectoryWithoutYamlTakesItsNamesFromAListOrAFile) {
  write("labels/train/a.txt", kBox);
  const Problem problem = test::problem_of([&] { convert_set(read_yolo_set({dir_.path()}, {})); });
  EXPECT_NE(problem.what.find("a.txt:1: 0 0.35"), std::string::npos) << problem.what;
  EXPECT_NE(problem.fix.find("--names cat,dog"), std::string::npos) << problem.fix;
  const ImportOptions named{.names = "cat,dog"};
  convert_set(read_yolo_set({dir_.path()}, named), named);
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kYoloBins});
  write("labels/train/classes.txt", "bird\n");
  convert_set(read_yolo_set({dir_.path()}, {}));
  EXPECT_EQ(written("train").samples()[0].objects[0].desc, "bird");
}

TEST_F(YoloDir, LabelsMayLieNextToTheImages) {
  write_image("flat/x.png");
  write("flat/x.txt", kBox);
  write_image("dice/Images/y.png");
  write("dice/Labels/y.txt", kBox);
  const ImportOptions named{.names = "cat"};
  for (const char* folder : {"flat", "dice"}) {
    convert_set(read_yolo_set({path(folder)}, named), named);
    EXPECT_EQ(bins(), std::vector<std::vector<int>>{kYoloBins}) << folder;
  }
}

TEST_F(YoloDir, APathOfAnotherMachineIsLookedForByItsLastParts) {
  convert("path: 'C:\\Users\\me\\set'\ntrain: images\\train\nnames: [cat]\n", kBox);
  EXPECT_EQ(bins(), std::vector<std::vector<int>>{kYoloBins});
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
  EXPECT_EQ(written("train").size(), 1);
  EXPECT_EQ(test::records_lost(result, reason::kNoLabelFile), 2) << "more/b.png once, lost.png";
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
  EXPECT_EQ(test::noted(result, "split test, which the YAML lists but does not exist"), 1);
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
  EXPECT_EQ(read_yolo_set({dir_.path()}, {}).splits.at("train").size(), 1u);
  write("other.yml", kYaml);
  const Problem problem = test::problem_of([&] { read_yolo_set({dir_.path()}, {}); });
  EXPECT_NE(problem.fix.find("other.yml"), std::string::npos) << problem.fix;
  write("empty/notes.md", "");
  EXPECT_NE(test::problem_of([&] { read_yolo_set({path("empty")}, {}); }).what.find("has no YAML"),
            std::string::npos);
}

TEST_F(YoloDir, CornersAreRefusedUntilTheOptionSaysSo) {
  const std::string corners = "0 0.1 0.1 0.6 0.6\n1 0.7 0.7 0.9 0.95\n";
  write("labels/train/a.txt", corners);
  const std::string yaml = write("set.yaml", kYaml);
  const Problem problem = test::problem_of([&] { convert_set(read_yolo_set({yaml}, {})); });
  EXPECT_NE(problem.error.find("look like corners"), std::string::npos) << problem.error;
  EXPECT_NE(problem.fix.find("--boxes xyxy"), std::string::npos);
  const ImportOptions options{.boxes = BoxForm::kCorners};
  convert_set(read_yolo_set({yaml}, options), options);
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{kYoloBins, {700, 700, 900, 950}}));
  convert(kYaml, "0 0.35 0.35 0.5 0.5\n0 0.3 0.3 0.5 0.5\n");
  EXPECT_EQ(bins().size(), 2u) << "inside the image as they are";
}

TEST_F(YoloDir, KeypointsOfNineValuesAreNoTurnedBoxes) {
  const std::string points =
      "0 0.3 0.3 0.1 0.1 0.31 0.32 0.28 0.27\n0 0.8 0.3 0.1 0.2 0.81 0.25 0 0\n";
  expect_refused(points, "kpt_shape");
  convert(kYaml, "0 0.2 0.2 0.3 0.3 0.2 0.4 0.1 0.3\n0 0.5 0.5 0.9 0.5 0.9 0.9 0.5 0.9\n");
  EXPECT_EQ(bins(), (std::vector<std::vector<int>>{{100, 200, 300, 400}, {500, 500, 900, 900}}));
}

// Darknet, CVAT: lists of images are the splits, which a directory without YAML does not say.
TEST_F(YoloDir, ListsWithoutAYamlAreRefusedUntilASplitIsNamed) {
  write("labels/train/a.txt", kBox);
  write("train.txt", "# my set\ndata/images/train/a.png\r\n");
  const Problem problem = test::problem_of([&] { read_yolo_set({dir_.path()}, {.names = "cat"}); });
  EXPECT_NE(problem.fix.find("train: train.txt"), std::string::npos) << problem.fix;
  const ImportOptions named{.split = "val", .names = "cat"};
  convert_set(read_yolo_set({dir_.path()}, named), named);
  EXPECT_EQ(written("val").size(), 1);
  convert_set(read_yolo_set({write("data.yaml", "train: train.txt\nnames: [cat]\n")}, {}));
  EXPECT_EQ(written("train").size(), 1) << "the fix works";
}

}  // namespace rematch
