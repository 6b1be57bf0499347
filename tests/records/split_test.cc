#include "tools/records/split.h"
#include "learn/data/same_picture.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "learn/data/dataset.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/draw/canvas.h"
#include "tools/draw/encode.h"

namespace rematch {
namespace {

// A JSONL of `num_images` images; every third has a second record, under another file name.
class SplitTest : public testing::Test {
 protected:
  SplitTest() {
    for (int i = 0; i < 30; ++i) {
      add(fmt::format("{}.png", i), i);
      if (i % 3 == 0) add(fmt::format("copy_{}.png", i), i);
    }
    path_ = directory_.write("data/all.jsonl", lines_);
  }

  void add(const std::string& name, int content) {
    directory_.write("data/" + name, fmt::format("image {}", content));
    lines_ += fmt::format(
        R"({{"images": ["{}"], "width": 64, "height": 64, "objects": [], "prompt": "find {}"}})"
        "\n",
        name, content);
  }

  // Contents of the images of a part.
  std::set<std::string> contents(const std::string& path) const {
    std::set<std::string> all;
    const Dataset dataset = Dataset::load(path, {});
    for (const Sample& sample : dataset.samples()) all.insert(read_file(sample.image_paths[0]));
    return all;
  }

  test::TempDir directory_;
  std::string lines_, path_;
};

}  // namespace

TEST_F(SplitTest, EveryRecordIsInOnePartAndNoImageInTwo) {
  const SplitFiles files = write_split(path_, {.val_share = 0.25, .seed = 0});
  EXPECT_EQ(files.train.path, directory_.file("data/all-train.jsonl"));
  EXPECT_EQ(files.val.path, directory_.file("data/all-val.jsonl"));
  EXPECT_EQ(files.train.num_records + files.val.num_records, 40);
  EXPECT_EQ(files.val.num_records, 10);
  const std::set<std::string> train = contents(files.train.path), val = contents(files.val.path);
  EXPECT_EQ(train.size() + val.size(), 30u);
  EXPECT_EQ(static_cast<int64_t>(val.size()), files.val.num_images);
  for (const std::string& image : val) EXPECT_FALSE(train.contains(image)) << image;
  EXPECT_EQ(read_file(path_), lines_);
}

TEST_F(SplitTest, TheSeedDecidesAndTheOrderOfRecordsDoesNot) {
  const auto val_of = [&](uint64_t seed, const std::string& path) {
    return contents(write_split(path, {.val_share = 0.3, .seed = seed}).val.path);
  };
  const std::set<std::string> first = val_of(0, path_);
  EXPECT_EQ(val_of(0, path_), first);
  EXPECT_NE(val_of(1, path_), first);
  std::vector<std::string> lines;
  for (size_t at = 0; at < lines_.size(); at = lines_.find('\n', at) + 1)
    lines.push_back(lines_.substr(at, lines_.find('\n', at) + 1 - at));
  std::reverse(lines.begin(), lines.end());
  std::string reversed;
  for (const std::string& line : lines) reversed += line;
  EXPECT_EQ(val_of(0, directory_.write("data/reversed.jsonl", reversed)), first);
}

TEST_F(SplitTest, PartsElsewhereFindTheirImages) {
  const SplitFiles files =
      write_split(path_, {.val_share = 0.2, .out_dir = directory_.file("other/place")});
  EXPECT_EQ(contents(files.train.path).size() + contents(files.val.path).size(), 30u);
}

TEST_F(SplitTest, CountsRecordsThatComeAgain) {
  add("0.png", 0);
  lines_ += R"({"images": ["1.png"], "width": 64, "height": 64, "objects": [], "prompt": "new"})";
  const SplitFiles files = write_split(directory_.write("data/more.jsonl", lines_), {});
  EXPECT_EQ(files.num_repeats, 12);
  EXPECT_EQ(files.train.num_records + files.val.num_records, 42);
}

TEST_F(SplitTest, NeverReplacesWhatItReads) {
  const std::string other = directory_.write("data/x-train.jsonl", lines_);
  std::filesystem::create_symlink(other, directory_.file("data/x.jsonl"));
  EXPECT_EQ(
      test::catch_user_error([&] { write_split(directory_.file("data/x.jsonl"), {}); }).kind(),
      ErrorKind::kConfig);
  EXPECT_EQ(read_file(other), lines_);
}

TEST_F(SplitTest, RefusesSharesAndFilesThatCannotBeDivided) {
  for (const double share : {0.0, 1.0, -0.1, 7.0, std::nan("")}) {
    EXPECT_EQ(test::catch_user_error([&] { write_split(path_, {.val_share = share}); }).kind(),
              ErrorKind::kConfig);
  }
  const std::string record = R"({"images": ["0.png"], "width": 64, "height": 64, "objects": []})";
  const std::string same = directory_.write("data/same.jsonl", record + "\n" + record + "\n");
  EXPECT_EQ(test::catch_user_error([&] { write_split(same, {}); }).kind(), ErrorKind::kData);
  const std::string gone = directory_.write(
      "data/gone.jsonl",
      lines_ + R"({"images": ["gone.png"], "width": 64, "height": 64, "objects": []})");
  const UserError error = test::catch_user_error([&] { write_split(gone, {}); });
  EXPECT_NE(std::string(error.what()).find("gone.jsonl:41"), std::string::npos) << error.what();
  EXPECT_FALSE(std::filesystem::exists(directory_.file("data/gone-train.jsonl")));
}

TEST(SamePicture, CopiesThatWereCompressedAgainAreOneGroup) {
  const test::TempDir directory;
  std::map<std::string, std::string> hashes;
  const auto add = [&](const std::string& name, const std::string& bytes) {
    hashes[directory.write(name, bytes)] = content_hash_of(bytes);
  };
  const auto page = [](int x) {  // a white page with a black mark
    Image image = Canvas(320, 240, kWhite).image();
    for (int row = 100; row < 120; ++row) {
      for (int column = x; column < x + 20; ++column) {
        for (size_t k = 0; k < 3; ++k)
          image.rgb[(static_cast<size_t>(row) * 320 + static_cast<size_t>(column)) * 3 + k] = 0;
      }
    }
    return image;
  };
  add("a.png", encode_png(page(40)));
  add("b.jpg", encode_jpeg(page(40), 60));
  add("c.png", encode_png(page(200)));
  add("d.txt", "no image");
  const auto texts = picture_texts(hashes);
  const auto text = [&](const char* name, size_t i) {
    return texts.at(directory.file(name)).at(i);
  };
  EXPECT_EQ(text("a.png", 1), text("b.jpg", 1));
  EXPECT_EQ(texts.at(directory.file("c.png")).size(), 1u);
  EXPECT_EQ(text("d.txt", 0), content_hash_of("no image"));
}

TEST(SamePicture, RoboflowsVersionsShareTheirSource) {
  EXPECT_EQ(roboflow_source("train/cat_jpg.rf.0a1b2c3d4e5f60718293a4b5c6d7e8f9.jpg"), "cat_jpg");
  EXPECT_EQ(roboflow_source("cat_jpg.rf.short.jpg"), "");
  EXPECT_EQ(roboflow_source("a.rf.jpg"), "");
  const auto texts =
      picture_texts({{"x_jpg.rf.0123456789ab.jpg", "00"}, {"x_jpg.rf.ba9876543210.jpg", "01"}});
  EXPECT_EQ(texts.begin()->second.back(), texts.rbegin()->second.back());
}

TEST(ChooseVal, BothSidesHaveARecordWhateverTheShare) {
  const std::vector<std::vector<std::string>> two{{"aa"}, {"bb"}}, uneven{{"aa"}, {"aa"}, {"bb"}};
  for (const double share : {0.001, 0.5, 0.999}) {
    for (const auto* hashes : {&two, &uneven}) {
      const std::vector<bool> is_val = choose_val(*hashes, {.val_share = share}, "x");
      const auto num_val = std::count(is_val.begin(), is_val.end(), true);
      EXPECT_GT(num_val, 0);
      EXPECT_LT(num_val, std::ssize(is_val));
    }
  }
}

TEST(ChooseVal, RecordsThatShareAnImageThroughOthersStayTogether) {
  const std::vector<std::vector<std::string>> chain{{"aa", "bb"}, {"cc"}, {"bb", "dd"}, {"dd"}};
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const std::vector<bool> is_val = choose_val(chain, {.val_share = 0.3, .seed = seed}, "x");
    EXPECT_EQ(is_val[0], is_val[2]);
    EXPECT_EQ(is_val[2], is_val[3]);
    EXPECT_NE(is_val[0], is_val[1]);
  }
}

}  // namespace rematch
