// Conversations with boxes: in the text of the answer, or in ms-swift's objects.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "import/import_dir.h"
#include "learn/data/stock_answer.h"
#include "tools/import/prompt_name.h"

namespace rematch {
namespace {

constexpr const char* kAnswer = R"([{"bbox_2d": [100, 200, 500, 1000], "label": "cat"}])";

// A directory with images of 200 x 100 pixels.
class ChatTest : public testing::Test {
 protected:
  ChatTest() {
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

  ForeignSet read(const std::vector<Json>& records, const ImportOptions& options = {}) const {
    std::string lines;
    for (const Json& record : records) lines += record.dump() + "\n";
    return read_chat_files({directory_.write("train.jsonl", lines)}, options);
  }
  WrittenSet convert(const std::vector<Json>& records, const ImportOptions& options = {}) const {
    return write_records(read(records, options), directory_.file("out"), options);
  }
  std::vector<Sample> written() const {
    return Dataset::load(directory_.file("out/train.jsonl"), {}).samples();
  }
  std::vector<Sample> samples(const std::vector<Json>& records,
                              const ImportOptions& options = {}) const {
    convert(records, options);
    return written();
  }
  /// Bins of the objects of one answer.
  std::vector<std::vector<int>> bins(const std::string& answer,
                                     const ImportOptions& options = {}) const {
    std::vector<std::vector<int>> all;
    const std::vector<Sample> read = samples({messages("<image>x", answer)}, options);
    for (const SceneObject& object : read[0].objects) all.push_back(object.geometry.bins);
    return all;
  }
  /// The reason why one answer is left out.
  std::string reason_of(const std::string& answer, const ImportOptions& options = {}) const {
    const WrittenSet written =
        convert({messages("<image>x", kAnswer), messages("<image>x", answer)}, options);
    const Losses& losses = written.ledger.records();
    return losses.size() == 1 ? losses.begin()->first : std::to_string(losses.size());
  }
  std::string refused(const std::vector<Json>& records, const ImportOptions& options = {}) const {
    const UserError error = test::catch_user_error([&] { convert(records, options); });
    EXPECT_EQ(error.kind(), ErrorKind::kData);
    return error.what();
  }

  test::TempDir directory_;
};

const std::vector<std::vector<int>> kAnswerBox = {{100, 200, 500, 999}};

}  // namespace

TEST_F(ChatTest, AnswersAreReadInAllWrappers) {
  const std::string list = kAnswer, one = list.substr(1, list.size() - 2);
  for (const std::string& text :
       {list, one, " \n" + list, "```json\n" + list + "\n```", "```json\n" + one + "\n```",
        "```\n" + list + "\n```", "Here they are:\n```json\n" + list + "\n```\nDone [1].",
        list + " and nothing else", "```json " + list, "<answer>" + list + "</answer>",
        "<think>maybe [1] or {2}</think>\n<answer>" + list + "</answer>",
        "<think>\n```json\n[{\"bbox_2d\": [1, 2, 3, 4], \"label\": \"dog\"}]\n```\nno.</think>" +
            list,
        "The boxes [see below] are: " + list, "<answer>\n```json\n" + list + "\n```\n</answer>"})
    EXPECT_EQ(bins(text), kAnswerBox) << text;
  const std::vector<std::vector<int>> two = {kAnswerBox[0], kAnswerBox[0]};
  for (const std::string& text :
       {one + ", " + one, one + "\n" + one, "```json\n" + one + ",\n" + one + "\n```"})
    EXPECT_EQ(bins(text), two) << text;
}

TEST_F(ChatTest, OldMarksAreBoxes) {
  for (const char* text :
       {"<|object_ref_start|>cat<|object_ref_end|><|box_start|>(100,200),(500,1000)<|box_end|>",
        "<ref>cat</ref><box>(100,200),(500,1000)</box>",
        "<ref>cat</ref><box>[[100, 200, 500, 1000]]</box>"}) {
    EXPECT_EQ(bins(text), kAnswerBox) << text;
    EXPECT_EQ(written()[0].objects[0].desc, "cat");
  }
  EXPECT_EQ(reason_of("<ref>cat</ref><box>(100,200)</box>"), reason::kPoint);
}

TEST_F(ChatTest, OnlyAListOrAGivenWordIsAnEmptyScene) {
  EXPECT_TRUE(bins("[]").empty());
  EXPECT_TRUE(bins("```json\n[]\n```").empty());
  for (const char* text : {"", "None", "There is a cat.", "null", "5", "[{]}", "```json\n```"})
    EXPECT_EQ(reason_of(text), reason::kNotAList) << text;
  EXPECT_TRUE(bins("None", {.empty_answers = {"None"}}).empty());
  EXPECT_NE(refused({messages("<image>x", "None")}).find("--empty-answer"), std::string::npos);
}

TEST_F(ChatTest, WhatMixesTwoFormsOrUnitsIsLeftOut) {
  EXPECT_EQ(reason_of("<|box_start|>(1,2),(30,40)<|box_end|>\n[{\"bbox_2d\": [1, 2, 30, 40], "
                      "\"label\": \"dog\"}]"),
            reason::kNotAList);
  const WrittenSet written =
      convert({messages("<image>x", R"([{"bbox_2d": [10, 20, 300, 400], "label": "cat"}])"),
               messages("<image>y", R"([{"bbox_2d": [0.1, 0.2, 0.5, 0.6], "label": "cat"}])"),
               messages("<image>u", R"([{"bbox_2d": [10, 20, 200, 400], "label": "cat"}])")});
  EXPECT_EQ(test::records_lost(written, reason::kShares), 1);
}

TEST_F(ChatTest, TheSizeOfARecordIsComparedWithItsFile) {
  Json wrong = messages("<image>x", kAnswer), right = wrong;
  right["width"] = 200;
  right["height"] = 100;
  wrong["width"] = 400;
  wrong["height"] = 200;
  EXPECT_EQ(test::records_lost(convert({wrong, right}), reason::kImageSize), 1);
}

TEST_F(ChatTest, AnEntryThatCannotBeReadLeavesOutItsRecord) {
  const auto beside = [](const std::string& entry) {
    return R"([{"bbox_2d": [100, 200, 500, 1000], "label": "cat"}, )" + entry + "]";
  };
  for (const auto& [entry, reason] : std::vector<std::pair<const char*, const char*>>{
           {R"({"bbox_2d": [1, 2, 3], "label": "a"})", reason::kNoBox},
           {R"({"label": "a"})", reason::kNoBox},
           {R"({"point_2d": [498, 310], "label": "screw"})", reason::kPoint},
           {R"({"bbox_2d": [498, 310], "label": "screw"})", reason::kPoint},
           {R"({"points": [[1, 2]], "label": "a"})", reason::kPoint},
           {R"({"bbox_2d": [1, 2, 30, 40]})", reason::kNoName},
           {R"({"bbox_2d": [1, 2, 30, 40], "label": " "})", reason::kBadName},
           {R"({"bbox_2d": [1, 2, 30, 40], "label": 5})", reason::kBadName},
           {R"({"bbox_2d": [1, 2, 30, 1001], "label": "a"})", reason::kBeyondScale},
           {R"({"bbox_2d": [30, 2, 1, 40], "label": "a"})", reason::kSwapped},
           {"7", reason::kNoBox}})
    EXPECT_EQ(reason_of(beside(entry)), reason) << entry;
  EXPECT_EQ(bins(beside(R"({"point_2d": [4, 3], "label": "b"})"), {.drop_unreadable = true}),
            kAnswerBox);
}

TEST_F(ChatTest, FourPointsAndMoreAreAnOutline) {
  const std::string quad =
      R"([{"points": [[100, 200], [500, 200], [500, 1000], [100, 1000]], "label": "a"}])";
  EXPECT_EQ(bins(quad), kAnswerBox);
  EXPECT_EQ(bins(quad, {.polygons = true}),
            (std::vector<std::vector<int>>{{100, 200, 500, 200, 500, 999, 100, 999}}));
}

TEST_F(ChatTest, ANameMayBeGivenOrStandInTheQuestion) {
  const Json record =
      messages("<image>\nLocate the shed in this image.", R"({"bbox_2d": [100, 200, 500, 1000]})");
  EXPECT_NE(refused({record}).find("--label-from-prompt"), std::string::npos);
  EXPECT_EQ(samples({record}, {.label = "hut"})[0].objects[0].desc, "hut");
  EXPECT_EQ(samples({record}, {.label_from_prompt = "Locate {} in"})[0].objects[0].desc,
            "the shed");
  EXPECT_EQ(find_name("find {}", "Please Find  two dogs "), "two dogs");
  EXPECT_EQ(find_name("Locate {} in", "Where is it?"), std::nullopt);
  EXPECT_EQ(test::catch_user_error([] { check_name_pattern("Locate it"); }).kind(),
            ErrorKind::kConfig);
}

TEST_F(ChatTest, BoxesOutsideTheFirstListAreNotLostInSilence) {
  const std::string list = std::string("```json\n") + kAnswer + "\n```";
  EXPECT_EQ(reason_of(list + "\nand\n" + list), reason::kNotAList);
  EXPECT_EQ(bins(list + "\nThat is all."), kAnswerBox);
}

TEST_F(ChatTest, ReadsAllDialectsInLinesAndInAnArray) {
  const Json first = messages("<image>\nFind cats.", kAnswer),
             second = conversations("<image>Find dogs.", kAnswer);
  Json parts = messages("", kAnswer);
  parts["messages"][0]["content"] = {{{"type", "image"}, {"image", "b.png"}},
                                     {{"type", "text"}, {"text", "Find birds."}}};
  parts.erase("images");
  const auto check = [&] {
    const std::vector<Sample> all = written();
    ASSERT_EQ(all.size(), 3u);
    EXPECT_EQ(all[0].prompt, "Find cats.");
    EXPECT_EQ(all[1].prompt, "Find dogs.");
    EXPECT_EQ(all[2].prompt, "Find birds.");
    EXPECT_EQ(std::filesystem::path(all[2].image_paths[0]).filename(), "b.png");
  };
  convert({first, second, parts});
  check();
  write_records(
      read_chat_files({directory_.write("train.json", Json::array({first, second, parts}).dump(2))},
                      {}),
      directory_.file("out"));
  check();
}

TEST_F(ChatTest, PointsBesideABoxAreNoOutline) {
  convert({messages("Find it.", R"([{"bbox_2d": [100, 200, 500, 900], "label": "cat",
                                     "points": [[1, 1], [2, 2], [3, 1], [2, 0]]}])")},
          {.polygons = true});
  EXPECT_EQ(written()[0].objects[0].geometry.kind, GeometryKind::kBbox2d);
}

TEST_F(ChatTest, ImagesInsideRecordsAreNamed) {
  const std::string bytes(300, 'A');
  Json with_bytes = messages("Find it.", kAnswer);
  with_bytes["images"] = {{{"bytes", bytes}, {"path", nullptr}}};
  const WrittenSet result =
      convert({messages("Find it.", kAnswer), with_bytes, messages("Find it.", kAnswer, bytes),
               messages("Find it.", kAnswer, "data:image/png;base64," + bytes)});
  EXPECT_EQ(test::records_lost(result, reason::kImageInside), 3);
  EXPECT_EQ(result.ledger.places().front().find(bytes), std::string::npos) << "it is shortened";
  const std::string hash(64, 'a');
  directory_.write(hash + ".png", encode_png(Canvas(200, 100, kWhite).image()));
  EXPECT_EQ(convert({messages("Find it.", kAnswer, hash)}).num_records(), 1) << "it is a name";
}

TEST_F(ChatTest, WhatIsNotJsonIsSaidToBeSo) {
  const std::string record = messages("Find it.", kAnswer).dump();
  for (const auto& [text, advice] : std::vector<std::pair<std::string, std::string>>{
           {record + ",\n" + record + ",\n", "comma at the end"},
           {"{'messages': []}\n", "json.dumps"},
           {"{\"messages\": NaN}\n", "NaN"},
           {"[" + record + ",]", "comma before"}}) {
    const Problem problem =
        test::problem_of([&] { read_chat_files({directory_.write("train.jsonl", text)}, {}); });
    EXPECT_NE(problem.fix.find(advice), std::string::npos) << problem.fix;
  }
}

TEST_F(ChatTest, AnOutlineBeyondItsUnitIsNamed) {
  const std::string quads =
      R"([{"points": [[10, 20], [500, 20], [500, 400], [10, 400]], "label": "cat"},
          {"points": [[10, 20], [1300, 20], [1300, 400], [10, 400]], "label": "dog"}])";
  EXPECT_EQ(
      test::records_lost(convert({messages("Find it.", kAnswer), messages("Find it.", quads)}),
                         reason::kOutlineBeyondScale),
      1);
  const Problem problem = test::problem_of([&] {
    convert({messages("Find it.", R"([{"points": [[10, 20], [1300, 20], [1300, 400], [10, 400]],
                                      "label": "cat"}])")});
  });
  EXPECT_NE(problem.what.find("points"), std::string::npos) << problem.what;
}

TEST_F(ChatTest, TheUsualTextIsNoPrompt) {
  for (const Sample& sample :
       samples({messages("<image>Find all.", kAnswer), messages("<image>", kAnswer)},
               {.usual_text = "Find all."}))
    EXPECT_EQ(sample.prompt, "");
}

TEST_F(ChatTest, EveryAnswerOfAConversationIsARecord) {
  Json record = messages("<image>Find cats.", kAnswer);
  record["messages"].insert(record["messages"].begin(),
                            Json{{"role", "system"}, {"content", "You find things."}});
  record["messages"].push_back({{"role", "user"}, {"content", "And dogs?"}});
  record["messages"].push_back({{"role", "assistant"}, {"content", "[]"}});
  const WrittenSet set = convert({record});
  const std::vector<Sample> all = written();
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[1].prompt, "And dogs?");
  EXPECT_TRUE(all[1].objects.empty());
  EXPECT_EQ(set.ledger.notes().size(), 3u);  // the system message, two answers, an empty one
}

TEST_F(ChatTest, SummaryAndMetadataAreKept) {
  Json record = messages("<image>Find cats.", kAnswer);
  record["metadata"] = {{"source", 7}};
  record["summary"] = "a cat";
  convert({record});
  const std::string line = read_file(directory_.file("out/train.jsonl"));
  EXPECT_NE(line.find(R"("summary": "a cat", "metadata": {"source": 7})"), std::string::npos)
      << line;
}

TEST_F(ChatTest, ARecordThatCannotBeReadIsCountedAndTheOthersAreRead) {
  Json tool = messages("<image>x", kAnswer), several = messages("<image>x", kAnswer);
  tool["messages"][1]["role"] = "tool";
  several["images"] = {"a.png", "b.png"};
  const WrittenSet set = convert({messages("<image>x", kAnswer),
                                  {{"text", "x"}},
                                  {{"messages", "x"}},
                                  tool,
                                  several,
                                  Json::array(),
                                  {{"messages", Json::array()}, {"images", {"a.png"}}},
                                  messages("<image>x", kAnswer, "https://example.org/q.png")});
  EXPECT_EQ(written().size(), 1u);
  EXPECT_EQ(test::records_lost(set, reason::kDamagedRecord), 4);
  EXPECT_EQ(test::records_lost(set, reason::kSeveralImages), 1);
  EXPECT_EQ(test::records_lost(set, reason::kNoAnswer), 1);
  EXPECT_EQ(test::records_lost(set, reason::kImageMissing), 1);
  EXPECT_NE(set.ledger.records().at(reason::kDamagedRecord).first.find("train.jsonl:2"),
            std::string::npos);
}

TEST_F(ChatTest, CoordinatesInAnotherUnitAreAnError) {
  EXPECT_NE(
      refused({messages("<image>x", R"([{"bbox_2d": [100, 200, 1500, 2000], "label": "cat"}])")})
          .find("--scale"),
      std::string::npos);
  const std::string shares = R"([{"bbox_2d": [0.1, 0.2, 0.5, 1.0], "label": "cat"}])";
  EXPECT_NE(refused({messages("<image>x", shares)}).find("--scale normalized"), std::string::npos);
  EXPECT_EQ(bins(shares, {.scale = {.unit = StockScale::Unit::kShares}}), kAnswerBox);
}

TEST_F(ChatTest, PixelsAreThoseOfTheResizedImageOrOfTheFile) {
  const std::string answer = R"([{"bbox_2d": [98, 28, 196, 100], "label": "cat"}])";
  EXPECT_EQ(bins(answer, {.scale = {.unit = StockScale::Unit::kResizedPixels}}),  // 196 x 112
            (std::vector<std::vector<int>>{{500, 250, 999, 893}}));
  EXPECT_EQ(bins(answer, {.scale = {.unit = StockScale::Unit::kFilePixels}}),
            (std::vector<std::vector<int>>{{490, 280, 980, 999}}));
}

/// ms-swift's records.
class SwiftTest : public ChatTest {
 protected:
  static Json record(const std::string& question, const std::string& answer, const Json& objects) {
    Json json = messages(question, answer);
    json["objects"] = objects;
    return json;
  }
  static std::vector<std::string> names(const Sample& sample) {
    std::vector<std::string> all;
    for (const SceneObject& object : sample.objects) all.push_back(object.desc);
    return all;
  }
};

TEST_F(SwiftTest, PlaceholdersAreFilledOverAllMessagesInOrder) {
  const Json boxes = {{20, 10, 120, 60}, {0, 0, 200, 100}};
  const std::string two = R"([{"bbox_2d": <bbox>, "label": "<ref-object>"}, )"
                          R"({"bbox_2d": <bbox>, "label": "<ref-object>"}])";
  const std::vector<Sample> all = samples(
      {record("<image>Find each <ref-object>.", two,
              {{"ref", {"cow", "cow", "calf"}}, {"bbox", boxes}}),
       record("<image>Find the <ref-object>.",
              R"([{"bbox_2d": <bbox>, "label": "<ref-object>"}, )"
              R"({"bbox_2d": <bbox>, "label": "goat"}])",
              {{"ref", {"animals", "cow"}}, {"bbox", boxes}}),
       record("<image>Find cats",
              R"([{"bbox_2d": <bbox>, "label": "cat"}, {"bbox_2d": <bbox>, "label": "dog"}])",
              {{"ref", Json::array()}, {"bbox", boxes}, {"bbox_type", "real"}})});
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[0].prompt, "Find each cow.");
  EXPECT_EQ(names(all[0]), (std::vector<std::string>{"cow", "calf"}));
  EXPECT_EQ(all[0].objects[0].geometry.bins, (std::vector<int>{100, 100, 600, 600}));
  EXPECT_EQ(names(all[1]), (std::vector<std::string>{"cow", "goat"}));
  EXPECT_EQ(names(all[2]), (std::vector<std::string>{"cat", "dog"}));
}

TEST_F(SwiftTest, PlaceholdersOfASystemMessageCount) {
  Json json = record("<image>Find <ref-object>", "<bbox>",
                     {{"ref", {"animals", "cat"}}, {"bbox", {{10, 20, 100, 60}}}});
  Json system;
  system["role"] = "system";
  system["content"] = "You find <ref-object>.";
  json["messages"].insert(json["messages"].begin(), system);
  const std::vector<Sample> read = samples({json});
  EXPECT_EQ(names(read[0]), std::vector<std::string>{"cat"});
}

TEST_F(SwiftTest, WordsNextToEmptyListsAreNoEmptyScene) {
  const WrittenSet written = convert({record("<image>What is it?", "A cat on a sofa.",
                                             {{"ref", Json::array()}, {"bbox", Json::array()}}),
                                      messages("<image>x", "[]")});
  EXPECT_EQ(test::records_lost(written, reason::kNotAList), 1);
}

TEST_F(SwiftTest, CaptionsPairNamesAndBoxes) {
  const Json boxes = {{20, 10, 120, 60}, {0, 0, 200, 100}};
  const std::vector<Sample> all = samples(
      {record("<image>Describe.", "<ref-object><bbox> and <ref-object><bbox>",
              {{"ref", {"cat", "dog"}}, {"bbox", boxes}}),
       record("<image>Find <ref-object>", "<bbox><bbox>", {{"ref", {"cat"}}, {"bbox", boxes}}),
       record("<image>Find", "[]", {{"ref", Json::array()}, {"bbox", Json::array()}}),
       messages("<image>Find forklifts", "[]")});
  EXPECT_EQ(names(all[0]), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(names(all[1]), (std::vector<std::string>{"cat", "cat"}));
  EXPECT_EQ(all[1].prompt, "Find cat");
  EXPECT_TRUE(all[2].objects.empty());
  EXPECT_EQ(all[3].prompt, "Find forklifts");
}

TEST_F(SwiftTest, RecordsThatDoNotPairAreLeftOut) {
  const Json one = {{20, 10, 120, 60}},
             good = record("<image>x", "<bbox>", {{"ref", {"a"}}, {"bbox", one}});
  for (const Json& bad :
       {record("<image>x", "<bbox><bbox>", {{"ref", {"a"}}, {"bbox", one}}),
        record("<image>x", "<bbox>",
               {{"ref", {"a", "b", "c"}}, {"bbox", {{1, 2, 3, 4}, {1, 2, 3, 4}}}}),
        record("<image>x", "[]", {{"ref", {"a"}}, {"bbox", one}}),
        record("<image>What is at <bbox>?", "<bbox>",
               {{"ref", {"a", "b"}}, {"bbox", {{1, 2, 30, 40}, {1, 2, 30, 40}}}}),
        record("<image>x", "<bbox>", {{"ref", {"a"}}, {"bbox", {{{10, 10}, {50, 50}}}}}),
        record("<image>x", "<bbox>", {{"ref", {"a"}}, {"bbox", 5}}),
        record("<image>x", "<bbox>", {{"ref", {"a"}}, {"bbox", one}, {"bbox_type", "norm1"}}),
        record("<image>x", "<bbox>", {{"ref", {"a"}}, {"bbox", one}, {"bbox_type", "odd"}})}) {
    const WrittenSet set = convert({good, bad});
    EXPECT_EQ(set.ledger.num_records_lost(), 1) << bad.dump();
    EXPECT_EQ(written().size(), 1u);
  }
}

TEST_F(SwiftTest, OldFormsAreLeftOutByName) {
  const Json old = {{"query", "<image>Find <ref-object>"},
                    {"response", "<bbox>"},
                    {"images", {"a.png"}},
                    {"objects", R"([{"caption": "cat", "bbox": [20, 10, 120, 60]}])"}};
  EXPECT_NE(refused({old}).find("\"messages\""), std::string::npos);
}

TEST_F(SwiftTest, SharesWithoutTheirTypeAreRefused) {
  const Json shares =
      record("<image>x", "<bbox>", {{"ref", {"cat"}}, {"bbox", {{0.1, 0.1, 0.5, 0.5}}}});
  EXPECT_NE(refused({shares}).find("norm1"), std::string::npos);
}

TEST_F(ChatTest, BoxesBeforeTheAnswerAreNotLostInSilence) {
  const std::string list = kAnswer;
  EXPECT_EQ(reason_of("<answer>" + list + "</answer><answer>" + list + "</answer>"),
            reason::kNotAList);
  EXPECT_EQ(reason_of(list + "<answer>" + list + "</answer>"), reason::kNotAList);
  EXPECT_EQ(reason_of(list + "<think>no</think>" + list), reason::kNotAList);
  EXPECT_TRUE(bins("<answer>None</answer>", {.empty_answers = {"None"}}).empty());
  EXPECT_TRUE(bins("```text\nNone\n```", {.empty_answers = {"None"}}).empty());
}

}  // namespace rematch
