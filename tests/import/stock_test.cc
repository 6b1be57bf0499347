#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "data/dataset.h"
#include "draw/canvas.h"
#include "draw/encode.h"
#include "import/foreign.h"
#include "import/stock_answer.h"
#include "import/stock_files.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr const char* kAnswer = R"([{"bbox_2d": [100, 200, 500, 1000], "label": "cat"}])";

// A directory with images of 200 x 100 pixels.
class StockTest : public testing::Test {
 protected:
  StockTest() {
    const std::string png = encode_png(Canvas(200, 100, kWhite).image());
    for (const char* name : {"a.png", "b.png", "photos/c.png"}) directory_.write(name, png);
  }

  // A conversation in the dialect of `messages`.
  static Json messages(const std::string& question, const std::string& answer,
                       const std::string& image = "a.png") {
    return {
        {"messages",
         {{{"role", "user"}, {"content", question}}, {{"role", "assistant"}, {"content", answer}}}},
        {"images", {image}}};
  }
  // The same in that of `conversations`.
  static Json conversations(const std::string& question, const std::string& answer) {
    return {{"image", "a.png"},
            {"conversations",
             {{{"from", "human"}, {"value", question}}, {{"from", "gpt"}, {"value", answer}}}}};
  }

  ForeignSet read(const std::vector<Json>& records, StockImport options = {}) const {
    std::string lines;
    for (const Json& record : records) lines += record.dump() + "\n";
    return read_stock_files({directory_.write("train.jsonl", lines)}, options);
  }
  std::vector<Sample> samples(const ForeignSet& set) const {
    write_records(set, directory_.file("out"));
    return Dataset::load(directory_.file("out/train.jsonl"), {}).samples();
  }
  std::string refused(const std::vector<Json>& records, StockImport options = {}) const {
    const UserError error = test::catch_user_error([&] { read(records, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }

  test::TempDir directory_;
};

StockAnswer answer_of(const std::string& text) { return read_stock_answer(text, {}, "test"); }

std::string answer_problem(const std::string& text) {
  const UserError error = test::catch_user_error([&] { answer_of(text); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  return error.problems()[0].what;
}

}  // namespace

TEST(StockAnswer, EveryBinSurvivesWritingAndReading) {
  for (int bin = 0; bin < kNumBins; ++bin)
    EXPECT_EQ(stock_to_bin(bin_to_stock(bin, 1000), 1000), bin);
  EXPECT_EQ(bin_to_stock(999, 1000), 1000);
  EXPECT_EQ(bin_to_stock(500, 1000), 501);  // 500.5005
  EXPECT_EQ(stock_to_bin(500, 1000), 500);  // 499.5 + 0.5
  EXPECT_EQ(stock_to_bin(1000, 1000), 999);
  EXPECT_EQ(stock_to_bin(112, 112), 999);
}

TEST(StockAnswer, IsReadFencedOrBareAndAlone) {
  const std::string list = kAnswer, one = list.substr(1, list.size() - 2);
  for (const std::string& text :
       {list, one, " \n" + list, "```json\n" + list + "\n```", "```json\n" + one + "\n```",
        "```\n" + list + "\n```", "Here they are:\n```json\n" + list + "\n```\nDone [1].",
        list + " and nothing else", "```json " + list}) {
    const StockAnswer answer = answer_of(text);
    ASSERT_EQ(answer.objects.size(), 1u) << text;
    EXPECT_EQ(answer.objects[0].desc, "cat");
    EXPECT_EQ(answer.objects[0].geometry.bins, (std::vector<int>{100, 200, 500, 999}));
    EXPECT_TRUE(answer.problems.empty());
  }
  EXPECT_TRUE(answer_of("[]").is_empty());
  EXPECT_TRUE(answer_of("```json\n[]\n```").is_empty());
  EXPECT_EQ(
      answer_of(R"([{"label": "a ] \" } b", "bbox_2d": [1, 2, 3, 4]}] ]")").objects.at(0).desc,
      "a ] \" } b");
  EXPECT_EQ(answer_of(R"([{"bbox_2d": [1, 2, 3, 4], "desc": "cat"}])").objects.size(), 1u);
}

TEST(StockAnswer, TextWithoutAListIsRefused) {
  for (const char* text : {"", " ", "There is a cat.", "```json\n```", "[1, 2", "[{]}", "null", "5",
                           R"([{"bbox_2d": [1, 2, 3, 4], "label": "a", "label": "b"}])",
                           "```json\n[{\"bbox_2d\": [1,"})
    EXPECT_FALSE(answer_problem(text).empty()) << text;
}

TEST(StockAnswer, EachEntryThatCannotBeReadIsNamed) {
  const StockAnswer answer = answer_of(R"([{"bbox_2d": [1, 2, 3, 4], "label": "cat"},
    {"bbox_2d": [1, 2, 3], "label": "cat"}, {"bbox_2d": [1, 2, 3, "4"], "label": "cat"}, {"label": "cat"},
    {"bbox_2d": [1, 2, 3, 4]}, {"bbox_2d": [1, 2, 3, 4], "label": " "}, {"bbox_2d": [1, 2, 3, 4], "label": 5},
    {"bbox_2d": [1, 2, 3, 1001], "label": "cat"}, {"bbox_2d": [-1, 2, 3, 4], "label": "cat"}, 7, [1], null])");
  EXPECT_EQ(answer.objects.size(), 1u);
  ASSERT_EQ(answer.problems.size(), 11u);
  EXPECT_EQ(answer.problems[0].rfind("entry 2: ", 0), 0u) << answer.problems[0];
  EXPECT_EQ(answer.num_beyond, 2);
  EXPECT_EQ(answer.largest, 1001);
}

TEST_F(StockTest, BoxesOutsideTheFirstListAreNotLostInSilence) {
  const std::string one = R"({"bbox_2d": [100, 200, 500, 1000], "label": "cat"})",
                    list = "```json\n[" + one + "]\n```";
  for (const std::string& answer :
       {one + "\n" + one, one + ", " + one, list + "\nand\n" + list, "[" + one + "] " + list}) {
    const ForeignSet set = read({messages("<image>", answer), messages("<image>", kAnswer)});
    EXPECT_EQ(set.splits.at("train").size(), 1U) << answer;
    ASSERT_EQ(set.examples.size(), 1U) << answer;
    EXPECT_NE(set.examples[0].find("boxes outside the first list"), std::string::npos);
  }
  EXPECT_EQ(read({messages("<image>", list + "\nThat is all.")}).examples.size(), 0U);
}

TEST_F(StockTest, ReadsBothDialectsInLinesAndInAnArray) {
  const Json first = messages("<image>\nFind cats.", kAnswer),
             second = conversations("<image>Find dogs.", kAnswer);
  Json parts = messages("", kAnswer);
  parts["messages"][0]["content"] = {{{"type", "image"}, {"image", "b.png"}},
                                     {{"type", "text"}, {"text", "Find birds."}}};
  parts.erase("images");
  const auto check = [&](const ForeignSet& set) {
    const std::vector<Sample> all = samples(set);
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].prompt, "Find cats.");
    EXPECT_EQ(all[1].prompt, "Find dogs.");
    EXPECT_EQ(all[2].prompt, "Find birds.");
    EXPECT_EQ(all[0].objects, all[1].objects);
    EXPECT_EQ(std::filesystem::path(all[2].image_paths[0]).filename(), "b.png");
    EXPECT_EQ(all[0].objects[0].geometry.bins, (std::vector<int>{100, 200, 500, 999}));
    EXPECT_EQ(all[0].width_px, 200);
  };
  check(read({first, second, parts}));
  check(read_stock_files(
      {directory_.write("train.json", Json::array({first, second, parts}).dump(2))}, {}));
}

TEST_F(StockTest, TheUsualTextIsNoPrompt) {
  const ForeignSet set = read({messages("<image>Find all.", kAnswer), messages("<image>", kAnswer)},
                              {.usual_text = "Find all."});
  for (const Sample& sample : samples(set)) EXPECT_EQ(sample.prompt, "");
}

TEST_F(StockTest, ImagesLieNextToTheFileOrInTheGivenDirectory) {
  const Json record = messages("<image>Find.", kAnswer, "c.png");
  EXPECT_EQ(samples(read({record}, {.files = {.images_dir = directory_.file("photos")}})).size(),
            1u);
  EXPECT_NE(
      std::string(test::catch_user_error([&] { samples(read({record})); }).what()).find("--images"),
      std::string::npos);
}

TEST_F(StockTest, EveryAnswerOfAConversationIsARecord) {
  Json record = messages("<image>Find cats.", kAnswer);
  record["messages"].insert(record["messages"].begin(),
                            Json{{"role", "system"}, {"content", "You find things."}});
  record["messages"].push_back({{"role", "user"}, {"content", "And dogs?"}});
  record["messages"].push_back({{"role", "assistant"}, {"content", "[]"}});
  const ForeignSet set = read({record});
  const std::vector<Sample> all = samples(set);
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].prompt, "And dogs?");
  EXPECT_TRUE(all[1].objects.empty());
  EXPECT_EQ(set.notes.size(), 2u);  // the system message, and two answers
}

TEST_F(StockTest, WhatCannotBeReadIsCountedAndNamed) {
  Json tool = messages("<image>x", kAnswer);
  tool["messages"][1]["role"] = "tool";
  const ForeignSet set = read(
      {messages("<image>x", kAnswer),
       messages("<image>x", "There is a cat."),
       messages("<image>x", R"([{"bbox_2d": [1, 2, 3, 4]}])"),
       messages("<image>x", R"([{"bbox_2d": [1, 2, 3, 4], "label": "a"}, {"point_2d": [1, 2]}])"),
       {{"text", "x"}},
       {{"messages", "x"}},
       tool,
       Json::array(),
       messages("<image>x", kAnswer, "https://example.org/a.png"),
       {{"messages", Json::array()}, {"images", {"a.png"}}},
       {{"messages", Json::array()}}});
  EXPECT_EQ(samples(set).size(), 2u);
  EXPECT_EQ(set.notes.at("left out: answers that are not a list of boxes"), 1);
  EXPECT_EQ(set.notes.at("left out: entries of answers that cannot be read"), 2);
  EXPECT_EQ(set.notes.at("left out: answers without a readable entry"), 1);
  EXPECT_EQ(set.notes.at("left out: records that cannot be read"), 6);
  EXPECT_EQ(set.notes.at("left out: records without an answer"), 1);
  ASSERT_EQ(set.examples.size(), 10u);
  EXPECT_NE(set.examples[0].find("train.jsonl:2: "), std::string::npos) << set.examples[0];
  EXPECT_EQ(write_records(set, directory_.file("out")).examples, set.examples);
}

TEST_F(StockTest, AFileWithoutAnyBoxIsAnErrorThatSaysWhy) {
  const std::string text = refused({messages("<image>x", "A cat.")});
  EXPECT_NE(text.find("train.jsonl:1"), std::string::npos) << text;
  EXPECT_EQ(text.find("--images"), std::string::npos) << text;
  EXPECT_EQ(text.find("from-swift"), std::string::npos) << text;
  refused({});
}

TEST_F(StockTest, CoordinatesInAnotherUnitAreAnError) {
  const Json pixels =
      messages("<image>x", R"([{"bbox_2d": [100, 200, 1500, 2000], "label": "cat"}])");
  EXPECT_NE(refused({pixels}).find("--scale"), std::string::npos);
  const Json shares =
      messages("<image>x", R"([{"bbox_2d": [0.1, 0.2, 0.5, 1.0], "label": "cat"}])");
  EXPECT_NE(refused({shares}).find("normalized"), std::string::npos);
}

TEST_F(StockTest, PixelsAreThoseOfTheResizedImageOrOfTheFile) {
  const Json record = messages("<image>x", R"([{"bbox_2d": [98, 28, 196, 100], "label": "cat"}])");
  const StockScale resized{.unit = StockScale::Unit::kResizedPixels};  // 196 x 112
  EXPECT_EQ(samples(read({record}, {.scale = resized}))[0].objects[0].geometry.bins,
            (std::vector<int>{500, 250, 999, 892}));
  const StockScale file{.unit = StockScale::Unit::kFilePixels};
  EXPECT_EQ(samples(read({record}, {.scale = file}))[0].objects[0].geometry.bins,
            (std::vector<int>{490, 280, 979, 999}));
  const ForeignSet gone =
      read({record, messages("<image>x", kAnswer, "gone.png")}, {.scale = resized});
  EXPECT_EQ(gone.notes.at("left out: records that cannot be read"), 1);
}

TEST_F(StockTest, SwappedCornersAreLeftOutAndCounted) {
  const WrittenSet written = write_records(
      read({messages(
          "<image>x",
          R"([{"bbox_2d": [5, 5, 2, 9], "label": "a"}, {"bbox_2d": [1, 2, 1, 2], "label": "flat"}])")}),
      directory_.file("out"));
  EXPECT_EQ(written.notes.at("left out: boxes with swapped corners or negative width or height"),
            1);
  EXPECT_EQ(written.splits[0].num_boxes, 1);
}

TEST_F(StockTest, TrainAndFromSwiftNameTheCommand) {
  const std::string lines =
      directory_.write("stock.jsonl", messages("<image>Find cats.", kAnswer).dump() + "\n");
  const std::string array = directory_.write(
      "stock.json", Json::array({conversations("<image>Find cats.", kAnswer)}).dump(1));
  for (const std::string& path : {lines, array}) {
    const UserError error = test::catch_user_error([&] { Dataset::load(path, {}); });
    EXPECT_NE(std::string(error.what()).find("rematch data from-qwen"), std::string::npos)
        << error.what();
  }
  const UserError swift = test::catch_user_error([&] { read_swift_files({lines}, {}); });
  EXPECT_NE(std::string(swift.what()).find("rematch data from-qwen"), std::string::npos)
      << swift.what();
}

}  // namespace rematch
