#include "learn/estep/teach/append_target.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "learn/estep/match/match_policy.h"
#include "learn/estep/teach/segment_checks.h"
#include "learn/estep/teach/truth_segment.h"
#include "teach/scene.h"

namespace rematch {
namespace {

using test::answer_format;
using test::box_entry;
using test::box_object;
using test::labelled_text;
using test::vocab;

Prompt a_prompt() {
  Prompt prompt;
  prompt.sample_id = 3;
  prompt.token_ids = vocab().encode("<|im_start|>user\nfind <|coord_7|>\n<|im_start|>assistant\n");
  prompt.where = "train.jsonl:4";
  prompt.images = {{"a.png", {1, 4, 4}}};
  return prompt;
}

// Rollout text and ground truth through parse, match and build.
SegmentResult build(const std::string& response, const std::vector<SceneObject>& truth) {
  const ParsedRollout parsed = vocab().parse(response);
  return build_segment(
      {a_prompt(), parsed, match_objects(to_scene(parsed.objects), truth, {}), truth},
      answer_format(), {});
}

std::string assistant_text(const Segment& segment) {
  return vocab().tokenizer->decode_bytes(
      std::vector<int>(segment.token_ids.begin() + segment.prompt_len, segment.token_ids.end()));
}

std::vector<int> bins_of(const Segment& segment, SlotSource source) {
  std::vector<int> bins;
  for (const Slot& slot : segment.slots_of(kCoordSlots)) {
    if (slot.source == source) bins.push_back(slot.target);
  }
  return bins;
}

std::string entry(int number, const std::string& desc, const std::vector<int>& bins) {
  return "\"object_" + std::to_string(number) + "\": {\"desc\": \"" + desc + "\", \"bbox_2d\": [" +
         test::coords(bins) + "]}";
}

}  // namespace

// spec: pack-04 select-02
TEST(BuildSegment, IsPromptPrefixAppendAndEnd) {
  const SegmentResult result = build("{" + box_entry("object_1") + ", \"object_2\": {\"desc",
                                     {box_object("dog", {500, 500, 600, 600})});
  const Segment& segment = result.segment;
  const std::vector<int> prompt_ids = a_prompt().token_ids;
  EXPECT_EQ(segment.prompt_len, static_cast<int>(prompt_ids.size()));
  EXPECT_TRUE(std::equal(prompt_ids.begin(), prompt_ids.end(), segment.token_ids.begin()));
  EXPECT_EQ(segment.encoded_len(),
            segment.prompt_len + segment.prefix_len + segment.append_len + 1);
  EXPECT_EQ(assistant_text(segment), "{" + box_entry("object_1") + ", " +
                                         entry(2, "dog", {500, 500, 600, 600}) + "}<|im_end|>");
  EXPECT_EQ(result.append_text, ", " + entry(2, "dog", {500, 500, 600, 600}) + "}");
  EXPECT_EQ(segment.token_ids.back(), 362);
  EXPECT_EQ(segment.sample_id, 3);
  EXPECT_EQ(segment.where, "train.jsonl:4");
  EXPECT_EQ(segment.images, a_prompt().images);
}

TEST(BuildSegment, EncodesTheAppendOnItsOwn) {
  // Together `{` and `"` would be one token.
  const SegmentResult result = build("{", {box_object("dog", {1, 2, 3, 4})});
  std::vector<int> expected = a_prompt().token_ids;
  for (const int id : vocab().encode("{")) expected.push_back(id);
  for (const int id : vocab().encode(result.append_text)) expected.push_back(id);
  expected.push_back(362);
  EXPECT_EQ(result.segment.token_ids, expected);
}

TEST(BuildSegment, TeachesStructureButNotDescriptionsOfTheAppend) {
  const SegmentResult result =
      build("{" + box_entry("object_1"),
            {box_object("dog", {500, 500, 600, 600}), box_object("ÿ", {900, 0, 999, 9})});
  EXPECT_EQ(labelled_text(result.segment),
            R"(, "object_2": {"desc": "", "bbox_2d": ["", "", "", ""]}, )"
            R"("object_3": {"desc": "", "bbox_2d": ["", "", "", ""]}}<|im_end|>)");
  EXPECT_EQ(bins_of(result.segment, SlotSource::kAppend),
            (std::vector<int>{500, 500, 600, 600, 900, 0, 999, 9}));
  EXPECT_TRUE(bins_of(result.segment, SlotSource::kPrefix).empty());
}

TEST(BuildSegment, TeachesTheTargetBinsOfMatchedPredictionsOnly) {
  const std::string response = "{" + entry(1, "a", {100, 100, 200, 200}) + ", " +
                               entry(2, "b", {700, 700, 800, 800}) + ", " +
                               entry(3, "c", {300, 300, 400, 400}) + "}";
  const SegmentResult result = build(
      response, {box_object("x", {301, 299, 402, 398}), box_object("y", {99, 101, 203, 204})});
  EXPECT_EQ(result.pairs, (std::vector<std::pair<int, int>>{{0, 1}, {2, 0}}));
  EXPECT_EQ(bins_of(result.segment, SlotSource::kPrefix),
            (std::vector<int>{99, 101, 203, 204, 301, 299, 402, 398}));
  EXPECT_TRUE(result.false_negatives.empty());
  EXPECT_EQ(result.append_text, "}");
  EXPECT_EQ(labelled_text(result.segment), "}<|im_end|>");
  for (const Slot& slot : result.segment.slots_of(kCoordSlots)) {
    EXPECT_GE(vocab().coord.bin_of(result.segment.token_ids[static_cast<size_t>(slot.position)]),
              0);
  }
}

TEST(BuildSegment, ContinuesFromTheLargestKeptIndex) {
  EXPECT_EQ(build("{" + box_entry("object_7"), {box_object("x", {900, 900, 950, 950})})
                .append_text.substr(0, 12),
            ", \"object_8\"");
  EXPECT_EQ(build("{\"object_9\": 1, ", {box_object("x", {900, 900, 950, 950})})
                .append_text.substr(0, 13),
            ", \"object_10\"");
  EXPECT_EQ(
      build("{\"foo\": 1, ", {box_object("x", {900, 900, 950, 950})}).append_text.substr(0, 12),
      ", \"object_1\"");
  EXPECT_EQ(build("garbage", {box_object("x", {900, 900, 950, 950})}).append_text.substr(0, 10),
            "\"object_1\"");
  EXPECT_EQ(build("{\"object_999999999\": 1, ", {box_object("x", {9, 9, 50, 50})})
                .append_text.substr(0, 21),
            ", \"object_1000000000\"");
}

TEST(BuildSegment, OnlyClosesTheAnswerOfAnEmptyScene) {
  EXPECT_EQ(assistant_text(build("{}", {}).segment), "{}<|im_end|>");
  EXPECT_EQ(assistant_text(build("nonsense", {}).segment), "{}<|im_end|>");
  EXPECT_EQ(assistant_text(build("{" + box_entry("object_1"), {}).segment),
            "{" + box_entry("object_1") + "}<|im_end|>");
}

TEST(AppendMissing, AppendsTheGroundTruthOfAnExcludedPair) {
  const std::vector<SceneObject> truth = {box_object("x", {1, 2, 3, 4}),
                                          box_object("y", {1, 2, 3, 5})};
  const ParsedRollout parsed =
      vocab().parse("{" + box_entry("object_1") + ", " + box_entry("object_2") + "}");
  const SegmentResult result =
      append_missing({a_prompt(), parsed, {}, truth},
                     {{0, 1, std::nullopt}, {1, 0, std::vector<int>{1, 2, 3, 4}}}, answer_format());
  EXPECT_EQ(result.num_excluded, 1);
  EXPECT_EQ(result.pairs, (std::vector<std::pair<int, int>>{{1, 0}}));
  EXPECT_EQ(result.false_negatives, (std::vector<int>{1}));
  EXPECT_EQ(result.append_text, ", " + entry(3, "y", {1, 2, 3, 5}) + "}");
  EXPECT_EQ(bins_of(result.segment, SlotSource::kPrefix), (std::vector<int>{1, 2, 3, 4}));
}

TEST(PairTargets, TransportPolygons) {
  const ParsedRollout parsed = vocab().parse("{\"object_1\": {\"desc\": \"a\", \"poly\": [" +
                                             test::coords({100, 100, 300, 100, 200, 300}) + "]}}");
  const std::vector<SceneObject> truth = {
      {"a", {GeometryKind::kPoly, {201, 301, 99, 99, 301, 99}}}};
  const auto targets =
      pair_targets({a_prompt(), parsed, match_objects(to_scene(parsed.objects), truth, {}), truth},
                   {.ot_epsilon = 1.0});
  ASSERT_EQ(targets.size(), 1u);
  EXPECT_EQ(targets[0].bins, (std::vector<int>{99, 99, 301, 99, 201, 301}));
}

TEST(BuildGroundTruthSegment, TeachesTheWholeAnswer) {
  const Segment segment = build_ground_truth_segment(
      a_prompt(),
      {box_object("red dog", {5, 6, 7, 8}), {"b", {GeometryKind::kPoly, {1, 2, 3, 4, 5, 6}}}},
      answer_format());
  EXPECT_EQ(labelled_text(segment),
            R"({"object_1": {"desc": "red dog", "bbox_2d": ["", "", "", ""]}, )"
            R"("object_2": {"desc": "b", "poly": [["", ""], ["", ""], ["", ""]]}}<|im_end|>)");
  EXPECT_EQ(bins_of(segment, SlotSource::kAppend),
            (std::vector<int>{5, 6, 7, 8, 1, 2, 3, 4, 5, 6}));
  EXPECT_EQ(segment.prefix_len, 0);
  EXPECT_EQ(segment.encoded_len(), segment.prompt_len + segment.append_len + 1);
  EXPECT_EQ(labelled_text(build_ground_truth_segment(a_prompt(), {}, answer_format())),
            "{}<|im_end|>");
}

RC_GTEST_PROP(BuildSegment, AlwaysGivesACompleteValidAnswer, ()) {
  const auto pick = [](int low, int high) {
    return *rc::gen::resize(rc::kNominalSize, rc::gen::inRange(low, high));
  };
  const auto bins = [&] {
    const int x = pick(0, 900), y = pick(0, 900);
    return std::vector<int>{x, y, x + pick(0, 100), y + pick(0, 100)};
  };
  std::vector<SceneObject> truth;
  std::string response = "{";
  const int num = pick(0, 6);
  for (int i = 0; i < num; ++i) {
    truth.push_back(
        box_object(*rc::gen::element<std::string>("cat", "飞机", "\"q\" \\", "e\xCC\x81"), bins()));
    if (pick(0, 3) == 0) continue;
    response += (response == "{" ? "" : ", ") +
                entry(pick(0, 12), "p", pick(0, 2) == 0 ? truth.back().geometry.bins : bins());
  }
  std::vector<int> ids = vocab().encode(response + "}");
  ids.resize(static_cast<size_t>(pick(0, static_cast<int>(ids.size()) + 1)));
  const ParsedRollout parsed = vocab().parse(ids);
  const SegmentResult result =
      build_segment({a_prompt(), parsed, match_objects(to_scene(parsed.objects), truth, {}), truth},
                    answer_format(), {});
  check_supervision(result.segment);
  const std::string text = assistant_text(result.segment);
  RC_ASSERT(text.ends_with("<|im_end|>"));
  RC_ASSERT(nlohmann::json::accept(text.substr(0, text.size() - 10)));
  RC_ASSERT(result.pairs.size() + result.false_negatives.size() == truth.size());
  RC_ASSERT(bins_of(result.segment, SlotSource::kPrefix).size() == 4 * result.pairs.size());
  RC_ASSERT(bins_of(result.segment, SlotSource::kAppend).size() ==
            4 * result.false_negatives.size());
}

}  // namespace rematch
