// from-qwen(to-qwen(records)) is the records.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "learn/data/dataset.h"
#include "learn/estep/answer/answer_format.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/draw/canvas.h"
#include "tools/draw/encode.h"
#include "tools/import/foreign.h"
#include "tools/records/stock_export.h"

namespace rematch {
namespace {

class StockFileTest : public testing::Test {
 protected:
  StockFileTest() {
    directory_.write("data/images/a.png", encode_png(Canvas(200, 100, kWhite).image()));
  }
  std::string write(const std::string& objects, const std::string& more = "") const {
    return directory_.write("data/train.jsonl", record(objects, more) + "\n");
  }
  static std::string record(const std::string& objects, const std::string& more = "") {
    return R"({"images": ["images/a.png"], "width": 200, "height": 100, )" + more +
           "\"objects\": [" + objects + "]}";
  }
  // The conversations of a file, and the records that these become.
  std::string there(const std::string& path, const StockScale& scale = {}) const {
    const std::string out = directory_.file("data/stock.jsonl");
    write_stock_file(path, out, {.scale = scale, .usual_text = "What is there?"});
    return out;
  }
  std::string back(const std::string& stock, const StockScale& scale = {}) const {
    const ImportOptions options{.split = "again", .scale = scale, .usual_text = "What is there?"};
    return write_records(read_chat_files({stock}, options), directory_.file("data"))
        .splits.front()
        .path;
  }

  test::TempDir directory_;
};

}  // namespace

TEST_F(StockFileTest, WritesTheAnswerByteForByte) {
  const std::string path = write(R"({"desc": "cat \"é\" \\", "bbox_2d": [0, 1, 500, 999]}, )"
                                 R"({"desc": "dog", "bbox_2d": [7, 8, 9, 10]})");
  const Json conversation = parse_json(read_file(there(path)), "stock");
  EXPECT_EQ(conversation["messages"][0]["content"], "<image>What is there?");
  EXPECT_EQ(conversation["messages"][1]["content"],
            "```json\n[\n\t{\"bbox_2d\": [0, 1, 501, 1000], \"label\": \"cat \\\"é\\\" \\\\\"},"
            "\n\t{\"bbox_2d\": [7, 8, 9, 10], \"label\": \"dog\"}\n]\n```");
  EXPECT_EQ(conversation["images"], Json::array({"images/a.png"}));
  EXPECT_EQ(parse_json(read_file(there(write(""))), "stock")["messages"][1]["content"],
            "```json\n[]\n```");
}

TEST_F(StockFileTest, TheAnswerIsTheTextThatTheFormatsTeach) {
  const std::string model = test::source_path("tests/golden/tokenizer");
  const auto tokenizer = Tokenizer::load(model);
  std::vector<SceneObject> objects;
  std::vector<AnswerEntry> entries;
  for (int bin = 0; bin < kNumBins - 1; bin += 7) {
    objects.push_back({.desc = fmt::format("a \"{}\"", bin),
                       .geometry = {.bins = {bin, 1, kNumBins - 1, bin + 1}}});
    entries.push_back({.shown = objects.back(), .taught_bins = objects.back().geometry.bins});
  }
  const Prompt prompt{.resized_px = {196, 112}};
  for (const auto& [row, sides] : {std::pair(relative_digits_format(), StockSides{}),
                                   std::pair(pixel_digits_format(), StockSides{196, 112, true})}) {
    const auto format = row.make(tokenizer, model);
    EXPECT_EQ(format_stock_answer(objects, sides), format->teach(entries, prompt).text) << row.name;
    EXPECT_EQ(format_stock_answer({}, sides), format->teach({}, prompt).text) << row.name;
  }
}

TEST_F(StockFileTest, ARoundTripKeepsEveryByte) {
  std::string lines;
  for (int bin = 0; bin < kNumBins; ++bin) {
    lines += record(fmt::format(R"({{"desc": "thing {0}", "bbox_2d": [{0}, 0, 999, {0}]}})", bin),
                    bin % 2 == 0 ? "" : "\"prompt\": \"Find \\\"it\\\".\\nNow.\", ") +
             "\n";
  }
  lines += record("") + "\n";
  lines += record(R"({"desc": "flat", "bbox_2d": [7, 3, 7, 3]}, )"
                  R"({"desc": "b", "bbox_2d": [999, 5, 999, 9]})") +
           "\n";
  const std::string path = directory_.write("data/train.jsonl", lines);
  EXPECT_EQ(read_file(back(there(path))), lines);
}

TEST_F(StockFileTest, BoxesOfTheFirstBinsAreNoShares) {
  const std::string path = write(R"({"desc": "dot", "bbox_2d": [0, 0, 1, 1]})");
  const std::string lines = read_file(path);
  EXPECT_EQ(read_file(back(there(path))), lines);
}

TEST_F(StockFileTest, PixelsOfTheResizedImageComeBackWithinTheirRounding) {
  const std::string path = write(R"({"desc": "cat", "bbox_2d": [0, 100, 500, 999]})");
  // 200 x 100 becomes 196 x 112: multiples of 28.
  const StockScale pixels{.unit = StockScale::Unit::kResizedPixels};
  const std::string stock = there(path, pixels);
  EXPECT_NE(read_file(stock).find("[0, 11, 98, 112]"), std::string::npos) << read_file(stock);
  EXPECT_EQ(Dataset::load(back(stock, pixels), {}).samples()[0].objects[0].geometry.bins,
            (std::vector<int>{0, 98, 500, 999}));
  const StockScale file{.unit = StockScale::Unit::kFilePixels};
  EXPECT_NE(read_file(there(path, file)).find("[0, 10, 100, 100]"), std::string::npos);
}

TEST_F(StockFileTest, APolygonIsRefusedWithTheCommandThatTurnsItIntoABox) {
  const std::string polygon = R"({"desc": "cat", "poly": [1, 2, 30, 40, 5, 60]})";
  const std::string path = directory_.write(
      "data/train.jsonl", record(polygon) + "\n" + record("") + "\n" + record(polygon) + "\n");
  const UserError error = test::catch_user_error([&] { there(path); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  ASSERT_EQ(error.problems().size(), 2u);
  EXPECT_NE(error.problems()[0].where.find("train.jsonl:1"), std::string::npos);
  EXPECT_NE(error.problems()[1].where.find("train.jsonl:3"), std::string::npos);
  EXPECT_NE(error.problems()[0].fix.find("rematch data boxes"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(directory_.file("data/stock.jsonl")));
}

TEST_F(StockFileTest, TheMarkOfAnImageInAPromptIsRefused) {
  const UserError error =
      test::catch_user_error([&] { there(write("", "\"prompt\": \"<image> what?\", ")); });
  EXPECT_NE(std::string(error.what()).find("<image>"), std::string::npos) << error.what();
}

TEST_F(StockFileTest, NothingThatIsReadIsReplaced) {
  const std::string path = write("");
  for (const std::string& out : {path, directory_.file("data/images/a.png")}) {
    EXPECT_EQ(test::catch_user_error([&] { write_stock_file(path, out, {}); }).kind(),
              ErrorKind::kConfig);
  }
  EXPECT_EQ(read_file(path), record("") + "\n");
}

TEST_F(StockFileTest, SummaryAndMetadataComeBack) {
  const std::string path = directory_.write(
      "data/train.jsonl",
      R"({"images": ["images/a.png"], "width": 200, "height": 100, "objects": [{"desc": "cat", )"
      R"("bbox_2d": [1, 2, 30, 40]}], "summary": "one cat", "metadata": {"id": [7, null]}})"
      "\n");
  EXPECT_EQ(read_file(back(there(path))), read_file(path));
}

}  // namespace rematch
