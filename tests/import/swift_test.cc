// Conversations with boxes in ms-swift's objects.
#include "import/chat_dir.h"

namespace rematch {
namespace {

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

}  // namespace

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
       record("<image>Find",
              "<|object_ref_start|><ref-object><|object_ref_end|><|box_start|><bbox><|box_end|> "
              "<ref>the <ref-object></ref><box><bbox></box>",
              {{"ref", {"cat", "dog"}}, {"bbox", boxes}}),
       record("<image>Find", "[]", {{"ref", Json::array()}, {"bbox", Json::array()}}),
       messages("<image>Find forklifts", "[]")});
  EXPECT_EQ(names(all[0]), (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(names(all[1]), (std::vector<std::string>{"cat", "cat"}));
  EXPECT_EQ(all[1].prompt, "Find cat");
  EXPECT_EQ(names(all[2]), (std::vector<std::string>{"cat", "dog"})) << "marks of their own";
  EXPECT_TRUE(all[3].objects.empty());
  EXPECT_EQ(all[4].prompt, "Find forklifts");
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

}  // namespace rematch
