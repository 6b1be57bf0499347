#include "learn/data/dataset.h"

#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/file.h"
#include "base/out_of_resources.h"
#include "model/vision/patches.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

// A directory with a 32 x 32 picture and a JSONL of the test's making.
class DatasetTest : public testing::Test {
 protected:
  DatasetTest() {
    directory_.write("images/a.png",
                     read_file(test::source_path("tests/golden/vision_images/pixel_qwen3.png")));
  }

  std::string write(const std::string& jsonl) { return directory_.write("data.jsonl", jsonl); }

  static std::string record(const std::string& image = "images/a.png", int width = 32,
                            int height = 32) {
    return fmt::format(R"({{"images": ["{}"], "objects": [], "width": {}, "height": {}}})", image,
                       width, height);
  }

  test::TempDir directory_;
};

}  // namespace

TEST_F(DatasetTest, KeepsFileOrderAndCountsBlankLines) {
  const Dataset dataset =
      Dataset::load(write(record() + "\r\n\n  \t\n" + record() + "\n" + record()), {});
  ASSERT_EQ(dataset.size(), 3);
  EXPECT_EQ(dataset.samples()[0].sample_id, 0);
  EXPECT_EQ(dataset.samples()[1].sample_id, 3);
  EXPECT_EQ(dataset.samples()[2].sample_id, 4);
  EXPECT_EQ(dataset.samples()[1].where, dataset.path() + ":4");
  EXPECT_EQ(dataset.samples()[0].image_paths[0], directory_.path() + "/images/a.png");
}

TEST_F(DatasetTest, ReadsOnlyTheFirstRecordsOfALimit) {
  const std::string path = write("\n" + record() + "\n" + record() + "\nnot a record\n");
  EXPECT_EQ(Dataset::load(path, {.limit = 2}).size(), 2);
  EXPECT_THROW(Dataset::load(path, {.limit = 3}), UserError);
  EXPECT_THROW(Dataset::load(path, {.limit = 0}), UserError);
}

TEST_F(DatasetTest, ReportsAllBadLinesTogether) {
  const std::string path = write("{\n" + record() + "\n[]\n" + record("images/b.png") + "\n");
  const UserError error = test::catch_user_error([&] { Dataset::load(path, {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  ASSERT_EQ(error.problems().size(), 3u);
  EXPECT_EQ(error.problems()[0].where.rfind(directory_.file("data.jsonl") + ":1", 0), 0u);
  EXPECT_EQ(error.problems()[1].where, directory_.file("data.jsonl") + ":3");
  EXPECT_EQ(error.problems()[2].where, directory_.file("data.jsonl") + ":4");
}

TEST_F(DatasetTest, ShowsTheFirstProblemsOfEachKindAndCountsAll) {
  std::string jsonl;
  for (int i = 0; i < 21; ++i) jsonl += "{}\n";
  const std::string inverted = R"({"desc": "a", "bbox_2d": [9, 1, 2, 3]})",
                    good = R"({"desc": "a", "bbox_2d": [1, 1, 2, 3]})";
  jsonl += fmt::format(
      R"({{"images": ["images/a.png"], "width": 32, "height": 32, "objects": [{}, {}, {}]}})",
      inverted, good, inverted);
  const std::string path = write(jsonl);
  const UserError error = test::catch_user_error([&] { Dataset::load(path, {}); });
  ASSERT_EQ(error.problems().size(), 6u) << "three of one kind, two of the other, the counts";
  EXPECT_NE(error.problems()[3].fix.find("`rematch data check " + path + " --fix OUT`"),
            std::string::npos)
      << error.what();
  const Problem& counts = error.problems().back();
  EXPECT_EQ(counts.error, "23 problems in 22 lines, of which 5 are shown");
  EXPECT_EQ(counts.what, "21 × the field \"images\" is missing; 2 × \"bbox_2d\" is inverted");
  EXPECT_NE(counts.fix.find("`rematch data check " + path + " --all`"), std::string::npos);
}

TEST_F(DatasetTest, TellsOfAForeignFormatBeforeAllItsLinesAreRead) {
  std::string coco = "{\n\"images\": [\n";
  for (int i = 0; i < 30; ++i) coco += fmt::format("{{\"id\": {},\n", i);
  const UserError error = test::catch_user_error(
      [&] { Dataset::load(write(coco + "\"annotations\": [\n" + record() + "\n"), {}); });
  EXPECT_NE(error.problems()[0].fix.find("rematch data from-coco"), std::string::npos)
      << error.what();
}

TEST_F(DatasetTest, SaysWhatAFileBeginsWithInPlaceOfARecord) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({"images": [], "annotations": [], "categories": []})", "images, annotations, categories"},
      {R"({"file_name": "a.png", "objects": {"bbox": []}})", "file_name, objects"},
      {R"({"messages": [], "objects": []})", "messages, objects"},
      {"a.png,1,2,3,4,cat\n", "`a.png,1,2,3,4,cat`"},
      {"PAR1\xff\xfe", "not UTF-8"}};
  for (const auto& [text, beginning] : cases) {
    const UserError error = test::catch_user_error([&] { Dataset::load(write(text), {}); });
    EXPECT_NE(error.problems()[0].what.find(beginning), std::string::npos) << error.what();
    EXPECT_NE(error.problems()[0].fix.find("from-csv"), std::string::npos) << error.what();
  }
  const UserError commas = test::catch_user_error(
      [&] { Dataset::load(write("{\"width\": 1},\n{\"width\": 2},\n"), {}); });
  EXPECT_NE(commas.problems()[0].fix.find("no comma"), std::string::npos) << commas.what();
}

TEST_F(DatasetTest, NamesAMissingImage) {
  const UserError error =
      test::catch_user_error([&] { Dataset::load(write(record("images/none.png")), {}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].error, "an image file is missing");
  EXPECT_NE(error.problems()[0].what.find(directory_.path() + "/images/none.png"),
            std::string::npos);
  EXPECT_EQ(Dataset::load(write(record("images/none.png")), {.check_image_files = false}).size(),
            1);
}

TEST_F(DatasetTest, RefusesADirectoryAsAnImage) {
  EXPECT_THROW(Dataset::load(write(record("images")), {}), UserError);
}

TEST_F(DatasetTest, RefusesAnEmptyFileAndAMissingOne) {
  EXPECT_EQ(test::catch_user_error([&] { Dataset::load(write("\n\n"), {}); }).kind(),
            ErrorKind::kData);
  EXPECT_EQ(test::catch_user_error([&] { Dataset::load(write(""), {}); }).kind(), ErrorKind::kData);
  EXPECT_EQ(
      test::catch_user_error([&] { Dataset::load(directory_.file("none.jsonl"), {}); }).kind(),
      ErrorKind::kEnvironment);
}

TEST_F(DatasetTest, PassesForbiddenTextsOn) {
  const std::string path = write(
      R"({"images": ["images/a.png"], "objects": [{"desc": "x<|end|>", "bbox_2d": [1, 2, 3, 4]}], )"
      R"("width": 32, "height": 32})");
  EXPECT_EQ(Dataset::load(path, {}).size(), 1);
  EXPECT_THROW(Dataset::load(path, {.forbidden_texts = {"<|end|>"}}), UserError);
}

TEST_F(DatasetTest, MayCallAllObjectsByOneName) {
  const std::string path =
      write(R"({"images": ["images/a.png"], "objects": [{"bbox_2d": [1, 2, 3, 4]}, )"
            R"({"desc": "x", "bbox_2d": [1, 2, 3, 4]}], "width": 32, "height": 32})");
  EXPECT_THROW(Dataset::load(path, {}), UserError);
  const Dataset dataset = Dataset::load(path, {.name_all = "object"});
  for (const SceneObject& object : dataset.samples()[0].objects) EXPECT_EQ(object.desc, "object");
}

TEST_F(DatasetTest, ChangesItsHashWithItsContent) {
  const std::string first = Dataset::load(write(record()), {}).content_hash();
  EXPECT_EQ(first.size(), 16u);
  EXPECT_EQ(first, Dataset::load(write(record()), {}).content_hash());
  EXPECT_NE(first, Dataset::load(write(record() + "\n"), {}).content_hash());
}

TEST_F(DatasetTest, ValidatesSizesOfImages) {
  EXPECT_NO_THROW(Dataset::load(write(record()), {}).validate_images({}));
  const Dataset wrong = Dataset::load(write(record("images/a.png", 64, 32)), {});
  const UserError error = test::catch_user_error([&] { wrong.validate_images({}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, wrong.samples()[0].where);
  EXPECT_NE(
      error.problems()[0].what.find("is 32 x 32 px (width x height), the record says 64 x 32"),
      std::string::npos);
}

TEST_F(DatasetTest, DecodingFindsATruncatedImageWithAGoodHeader) {
  const std::string whole = read_file(directory_.file("images/a.png"));
  directory_.write("images/cut.png", whole.substr(0, whole.size() / 2));
  const std::string lines = record() + "\n" + record("images/cut.png") + "\n" + record() + "\n";
  const Dataset data = Dataset::load(write(lines), {});
  data.validate_images({});
  EXPECT_EQ(data.decode_images(1), 1) << "evenly spread from the first";
  const UserError error = test::catch_user_error([&] { data.decode_images(100); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  ASSERT_EQ(error.problems().size(), 1u);
  EXPECT_NE(error.problems()[0].where.find(":2"), std::string::npos) << error.what();
}

TEST_F(DatasetTest, CountsDeepGreyImages) {
  directory_.write("images/deep.png",
                   read_file(test::source_path("tests/golden/vision_images/grey16.png")));
  PatchOptions resizing;
  resizing.do_resize = true;
  const Dataset dataset =
      Dataset::load(write(record("images/deep.png", 4, 4) + "\n" + record()), {});
  const ImageCounts counts = dataset.validate_images(resizing);
  EXPECT_EQ(counts.num_deep_grey, 1);
  EXPECT_EQ(counts.num_turned, 0);
}

// The PNG with an EXIF block that says orientation 6: turned clockwise by a quarter.
std::string turned(std::string png) {
  using namespace std::string_literals;
  constexpr size_t kAfterHeader = 33;  // signature and IHDR
  return png.insert(kAfterHeader,
                    "\0\0\0\x1A"s
                    "eXIfMM\0\x2A\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0"
                    "\0\0\0\0\0\0\0\0"s);
}

TEST_F(DatasetTest, ARecordDrawnOnTheUnturnedPixelsOfAPhotoIsRefusedByName) {
  directory_.write(
      "images/photo.png",
      turned(read_file(test::source_path("tests/golden/e2e/images/1.png"))));  // 96 x 64
  PatchOptions resizing;
  resizing.do_resize = true;
  const ImageCounts counts =
      Dataset::load(write(record("images/photo.png", 64, 96)), {}).validate_images(resizing);
  EXPECT_EQ(counts.num_turned, 1);
  EXPECT_EQ(counts.num_hidden_turns, 0);
  const Dataset drawn_unturned = Dataset::load(write(record("images/photo.png", 96, 64)), {});
  const UserError error = test::catch_user_error([&] { drawn_unturned.validate_images(resizing); });
  EXPECT_EQ(error.problems()[0].error, "a record was drawn on the unturned pixels of a photo");
  EXPECT_NE(error.problems()[0].what.find("EXIF orientation 6"), std::string::npos);
  EXPECT_NE(error.problems()[0].fix.find("exiftool -Orientation="), std::string::npos);
}

TEST_F(DatasetTest, PhotosWhoseSizeHidesTheirTurnAreOneWarning) {
  directory_.write("images/square.png",
                   turned(read_file(test::source_path("tests/golden/e2e/images/0.png"))));
  PatchOptions resizing;
  resizing.do_resize = true;
  const ImageSize size = read_image_size(directory_.file("images/square.png"));
  ASSERT_EQ(size.width_px, size.height_px);
  const Dataset dataset =
      Dataset::load(write(record("images/square.png", size.width_px, size.height_px)), {});
  const ImageCounts counts = dataset.validate_images(resizing);
  EXPECT_EQ(counts.num_hidden_turns, 1);
  const std::vector<std::string> texts = image_warnings(counts, "train.jsonl");
  ASSERT_EQ(texts.size(), 1u);
  EXPECT_NE(texts[0].find("1 images of train.jsonl are stored turned (EXIF)"), std::string::npos);
}

TEST_F(DatasetTest, TakesAMachineWithoutDescriptorsForNoFaultOfAnImage) {
#ifdef REMATCH_SANITIZED
  GTEST_SKIP() << "UBSan looks at a class through a pipe and finds none without descriptors";
#endif
  const Dataset dataset = Dataset::load(write(record()), {});
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_THROW(dataset.validate_images({}), OutOfResources);
  const UserError error = test::catch_user_error([&] { dataset.validate_images({}); });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_NE(error.problems()[0].fix.find("ulimit -n"), std::string::npos);
}

TEST_F(DatasetTest, ValidatesThatSidesAreMultiples) {
  directory_.write("images/odd.jpg",
                   read_file(test::source_path("tests/golden/vision_images/jpeg_420.jpg")));
  directory_.write("images/cut.jpg",
                   read_file(test::source_path("tests/golden/vision_images/head_only.jpg")));
  const Dataset dataset =
      Dataset::load(write(record("images/odd.jpg", 45, 35) + "\n" + record("images/cut.jpg")), {});
  const UserError error = test::catch_user_error([&] { dataset.validate_images({}); });
  ASSERT_EQ(error.problems().size(), 2u);
  EXPECT_NE(error.problems()[0].where.find("images/odd.jpg"), std::string::npos);
  EXPECT_NE(error.problems()[0].fix.find("32 x 32"), std::string::npos);
  EXPECT_NE(error.problems()[1].error.find("corrupt"), std::string::npos);
}

TEST_F(DatasetTest, LeavesSamplesOut) {
  const Dataset dataset = Dataset::load(write(record() + "\n\n" + record() + "\n" + record()), {});
  const Dataset rest = dataset.copy_without({0, 2});
  ASSERT_EQ(rest.size(), 1);
  EXPECT_EQ(rest.samples()[0].sample_id, 2);
  EXPECT_EQ(rest.content_hash(), dataset.content_hash());
  EXPECT_EQ(dataset.copy_without({}).size(), 3);
}

TEST_F(DatasetTest, TellsWhatItsBoxesLookLike) {
  std::string jsonl;
  for (int i = 0; i < 12; ++i) {
    jsonl +=
        R"({"images": ["images/a.png"], "objects": [{"desc": "a", "bbox_2d": [3, 4, 30, 31]}], )"
        R"("width": 32, "height": 32})"
        "\n";
  }
  const Dataset dataset = Dataset::load(write(jsonl), {});
  ASSERT_EQ(dataset.warnings().size(), 1u);
  EXPECT_NE(dataset.warnings()[0].find("LOOK LIKE PIXELS: in 12 images no coordinate"),
            std::string::npos)
      << dataset.warnings()[0];
}

TEST_F(DatasetTest, GivesImageRefsOfTheResizedImage) {
  const Dataset dataset = Dataset::load(write(record("images/a.png", 640, 427)), {});
  PatchOptions options;
  options.do_resize = true;
  // 416 x 640 px
  EXPECT_EQ(image_refs(dataset.samples()[0], options)[0].grid_thw, (GridThw{1, 26, 40}));
}

TEST_F(DatasetTest, GivesImageRefsWithGridsOfTheRecord) {
  const Dataset dataset = Dataset::load(write(record("images/a.png", 64, 32)), {});
  const std::vector<ImageRef> refs = image_refs(dataset.samples()[0], {});
  ASSERT_EQ(refs.size(), 1u);
  EXPECT_EQ(refs[0].path, dataset.samples()[0].image_paths[0]);
  EXPECT_EQ(refs[0].grid_thw, (GridThw{1, 2, 4}));
}

TEST_F(DatasetTest, ReadsLinesThatBeginWithAByteOrderMark) {
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_EQ(Dataset::load(write(mark + record() + "\n" + mark + record() + "\n"), {}).size(), 2);
}

TEST_F(DatasetTest, RefusesUtf16AsAWhole) {
  std::string wide = "\xFF\xFE";
  for (const char c : record() + "\n" + record() + "\n") (wide += c) += '\0';
  const std::string path = write(wide);
  const UserError error = test::catch_user_error([&] { Dataset::load(path, {}); });
  ASSERT_EQ(error.problems().size(), 1u);
  EXPECT_EQ(error.problems()[0].error, "the text is UTF-16, not UTF-8");
  EXPECT_EQ(error.problems()[0].where, path);
}

TEST_F(DatasetTest, RefusesASecondRecordBehindAZeroByte) {
  const std::string path = write(record() + std::string(1, '\0') + record() + "\n");
  const UserError error = test::catch_user_error([&] { Dataset::load(path, {}); });
  EXPECT_EQ(error.problems()[0].what, "a zero byte");
  EXPECT_EQ(error.problems()[0].where, fmt::format("{}:1:{}", path, record().size() + 1));
}

TEST_F(DatasetTest, ErrorsOfAnImageNameItsRecord) {
  directory_.write("images/broken.png", "not a picture");
  const Dataset dataset =
      Dataset::load(write(record() + "\n" + record("images/broken.png") + "\n"), {});
  const UserError error = test::catch_user_error([&] { dataset.validate_images({}); });
  EXPECT_NE(error.problems()[0].where.find("images/broken.png"), std::string::npos);
  EXPECT_NE(error.problems()[0].where.find("data.jsonl:2"), std::string::npos);
}

}  // namespace rematch
