// Conversations with boxes in the text of the answer.
#include "import/chat_dir.h"
#include "tools/import/chat_steps.h"

namespace rematch {

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
  EXPECT_EQ(reason_of("<ref>cat</ref><box>(100,200)</box>"), reason::kNoBox);
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
            reason::kSeveralLists);
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
           {R"({"point_2d": [498, 310], "label": "screw"})", reason::kNoBox},
           {R"({"bbox_2d": [498, 310], "label": "screw"})", reason::kNoBox},
           {R"({"points": [[1, 2]], "label": "a"})", reason::kNoBox},
           {R"({"bbox_2d": [1, 2, 30, 40]})", reason::kNoNameInAnswer},
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
  EXPECT_EQ(find_name("Locate {} in", "Where is it?"), "");
  EXPECT_EQ(test::catch_user_error([] { check_name_pattern("Locate it"); }).kind(),
            ErrorKind::kConfig);
}

TEST_F(ChatTest, BoxesOutsideTheFirstListAreNotLostInSilence) {
  const std::string list = std::string("```json\n") + kAnswer + "\n```";
  EXPECT_EQ(reason_of(list + "\nand\n" + list), reason::kSeveralLists);
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
           {record + ",\n" + record + ",\n", "or at the end"},
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
                         reason::kBeyondScale),
      1);
  const Problem problem = test::problem_of([&] {
    convert({messages("Find it.", R"([{"points": [[10, 20], [1300, 20], [1300, 400], [10, 400]],
                                      "label": "cat"}])")});
  });
  EXPECT_NE(problem.fix.find("points"), std::string::npos) << problem.fix;
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
  // the system message, two answers, an empty one, an image that no record names
  EXPECT_EQ(set.ledger.notes().size(), 4u);
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

TEST_F(ChatTest, BoxesBeforeTheAnswerAreNotLostInSilence) {
  const std::string list = kAnswer;
  EXPECT_EQ(reason_of("<answer>" + list + "</answer><answer>" + list + "</answer>"),
            reason::kSeveralLists);
  EXPECT_EQ(reason_of(list + "<answer>" + list + "</answer>"), reason::kSeveralLists);
  EXPECT_EQ(reason_of(list + "<think>no</think>" + list), reason::kSeveralLists);
  EXPECT_TRUE(bins("<answer>None</answer>", {.empty_answers = {"None"}}).empty());
}

}  // namespace rematch
