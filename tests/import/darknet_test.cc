// Darknet's lists of images, which give the splits of a directory without YAML.
#include <gtest/gtest.h>

#include <filesystem>

#include "import/import_dir.h"

namespace rematch {
namespace {

class DarknetDir : public test::ImportDir {
 protected:
  DarknetDir() {
    for (const char* name : {"a", "b", "c", "d"}) add("obj", name);
    write("set/obj.names", "cat\n");
  }
  void add(const std::string& folder, const std::string& name) {
    write_image("set/" + folder + "/" + name + ".png");
    write("set/" + folder + "/" + name + ".txt", "0 0.35 0.35 0.5 0.5\n");
  }
  WrittenSet convert(const ImportOptions& options = {}) {
    return convert_set(read_yolo_set(path("set"), options), options);
  }
  int64_t num(const std::string& split) { return static_cast<int64_t>(written(split).size()); }
};

constexpr const char* kUnlisted = "an image that no list names (train.txt, …)";
constexpr const char* kMissing = "an entry of a list without an image";

}  // namespace

TEST_F(DarknetDir, ListsAreSplits) {
  write("set/obj.data", "classes = 1\ntrain = data/train.txt\nvalid = data/test.txt\n");
  write("set/train.txt", "# my set\ndata/obj/a.png\r\ndata/obj/b.png\n");
  write("set/test.txt", "/home/me/data/obj/c.png\ndata/obj/gone.png\n");
  const WrittenSet result = convert();
  EXPECT_EQ(num("train"), 2);
  EXPECT_EQ(num("val"), 1) << "obj.data names it";
  EXPECT_EQ(test::records_lost(result, kUnlisted), 1);
  EXPECT_EQ(test::records_lost(result, kMissing), 1);
}

TEST_F(DarknetDir, ListsMayLieInDataWithOtherNamesAndLinks) {
  write("set/cfg/obj.data", "train = data/my_train.txt\nvalid = data/my_valid.txt\n");
  std::filesystem::create_directory_symlink(path("set"), path("link"));
  write("set/data/my_train.txt", path("link/obj/a.png") + "\n" + path("link/obj/b.png") + "\n");
  write("set/data/my_valid.txt", path("set/obj/c.png") + "\n" + path("set/obj/d.png") + "\n");
  convert();
  EXPECT_EQ(num("train"), 2);
  EXPECT_EQ(num("val"), 2);
}

TEST_F(DarknetDir, OneListForBothIsTraining) {
  write("set/obj.data", "train = train.txt\nvalid = train.txt\n");
  write("set/train.txt", "obj/a.png\n");
  write("set/val.txt", "obj/a.png\nobj/b.png\n");
  const WrittenSet result = convert();
  EXPECT_EQ(num("train"), 1);
  EXPECT_EQ(num("val"), 1);
  EXPECT_EQ(test::noted(result, "images of two lists, kept for training or validation"), 1);
}

// CVAT's folders have "train" in their names.
TEST_F(DarknetDir, FoldersCountOnlyForSplitsWithoutAList) {
  std::filesystem::remove_all(path("set/obj"));
  add("train", "e");
  add("train", "f");
  add("valid", "g");
  write("set/train.txt", "train/e.png\n");
  const WrittenSet result = convert();
  EXPECT_EQ(num("train"), 1);
  EXPECT_EQ(num("val"), 1);
  EXPECT_EQ(test::records_lost(result, kUnlisted), 1);
}

TEST_F(DarknetDir, ListsThatNameNothingAreCountedOrRefused) {
  write("set/train.txt", "gone/a1.png\n");
  const WrittenSet result = convert();
  EXPECT_EQ(num("train"), 4);
  EXPECT_EQ(test::records_lost(result, kMissing), 1);
  write_image("elsewhere/x.png");
  write("set/train.txt", path("elsewhere/x.png") + "\n");
  EXPECT_NE(test::problem_of([&] { convert(); }).what.find("none of its images"),
            std::string::npos);
}

TEST_F(DarknetDir, OtherFilesAreNoLists) {
  write("set/weights.data", std::string("\xFF\xFE\0=", 4));
  write("set/train.txt", "0 0.35 0.35 0.5 0.5\n");
  convert({.split = "val"});
  EXPECT_EQ(num("val"), 4);
  convert();
  EXPECT_EQ(num("train"), 4);
}

TEST_F(DarknetDir, ImagesMayLieNextToTheirList) {
  std::filesystem::remove_all(path("set/obj"));
  add("", "a");
  add("", "b");
  write("set/train.txt", "/home/me/set/a.png\n");
  write("set/val.txt", "b.png\n");
  convert();
  EXPECT_EQ(num("train"), 1);
  EXPECT_EQ(num("val"), 1);
}

}  // namespace rematch
