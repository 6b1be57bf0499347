// Answers of the stages parse, match and segment to wrong lines.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/json.h"
#include "support/capture.h"
#include "support/paths.h"
#include "tools/stages/stage.h"

namespace rematch {
namespace {

StageOptions with_tokenizer() {
  StageOptions options;
  options.model_dir = test::source_path("tests/golden/tokenizer");
  return options;
}

Json run(Stage& stage, const std::string& input) { return stage.run(parse_json(input, "input")); }

// The kind of error a line gives, and that its message names `mention`.
ErrorKind refused(Stage& stage, const std::string& input, const std::string& mention) {
  const UserError error = test::catch_user_error([&] { run(stage, input); });
  EXPECT_NE(std::string(error.what()).find(mention), std::string::npos) << input << "\n"
                                                                        << error.what();
  EXPECT_FALSE(error.problems()[0].fix.empty());
  return error.kind();
}

std::string match_line(const std::string& object) {
  return R"({"predictions": [)" + object + R"(], "ground_truth": [{"bbox_2d": [1, 2, 3, 4]}]})";
}

std::string segment_line(const std::string& object, const std::string& options = "{}") {
  return R"({"prompt_token_ids": [361, 84], "response_token_ids": [90], "ground_truth": [)" +
         object + R"(], "options": )" + options + "}";
}

}  // namespace

TEST(MatchStage, TakesFlatAndNestedVerticesAndCoordTokens) {
  const auto stage = make_match_stage({});
  const Json flat = run(*stage, R"({"predictions": [{"poly": [10, 10, 90, 10, 50, 90]}], )"
                                R"("ground_truth": [{"bbox_2d": [10, 10.0, 90, 90]}]})");
  const Json nested =
      run(*stage, R"({"predictions": [{"poly": [[10, 10], ["<|coord_90|>", 10], [50, 90]]}], )"
                  R"("ground_truth": [{"bbox_2d": [10, 10, 90, 90], "desc": "x"}]})");
  EXPECT_EQ(flat, nested);
  EXPECT_EQ(flat["pairs"].size(), 1u);
}

TEST(MatchStage, ClampsCoordinatesBeyondTheCanvas) {
  const auto stage = make_match_stage({});
  EXPECT_DOUBLE_EQ(
      run(*stage, R"({"predictions": [{"bbox_2d": [-50, -50, 1200, 1200]}], )"
                  R"("ground_truth": [{"bbox_2d": [0, 0, 999, 999]}]})")["matched_maskiou_sum"]
          .get<double>(),
      1.0);
}

TEST(MatchStage, NamesWhatIsWrongWithAnObject) {
  const auto stage = make_match_stage({});
  EXPECT_EQ(refused(*stage, match_line("{}"), "predictions[0]"), ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line("5"), "predictions[0]"), ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"bbox_2d": [1, 2, 3, 4], "poly": [1, 2, 3, 4, 5, 6]})"),
                    "two geometries"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"bbox_2d": [1, 2, 3]})"), "four coordinates"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"poly": [1, 2, 3, 4]})"), "three vertices"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"poly": [1, 2, 3, 4, 5, 6, 7]})"), "odd number"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"poly": [[1, 2, 3], [4, 5, 6]]})"), "pair"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"bbox_2d": [1, 2, 3, 4.5]})"), "4.5"), ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"bbox_2d": [1, 2, 3, 1e99]})"), "bin"),
            ErrorKind::kData);
  EXPECT_EQ(
      refused(*stage, match_line(R"({"bbox_2d": [1, 2, 3, "<|coord_1000|>"]})"), "coord_1000"),
      ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"bbox_2d": [1, 2, 3, "<|coord_04|>"]})"), "coord_04"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"bbox_2d": [1, 2, 3, null]})"), "null"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, match_line(R"({"bbox_2d": [1, 2, 3, 4], "line": 1})"), "line"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, R"({"predictions": 1, "ground_truth": []})", "predictions"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, R"({"predictions": []})", "ground_truth"), ErrorKind::kData);
}

TEST(MatchStage, RefusesUnknownFieldsAndOptions) {
  const auto stage = make_match_stage({});
  EXPECT_EQ(refused(*stage, R"({"predictions": [], "ground_truth": [], "option": {}})", "options"),
            ErrorKind::kConfig);
  EXPECT_EQ(
      refused(*stage, R"({"predictions": [], "ground_truth": [], "options": {"maskiou_gat": 1}})",
              "maskiou_gate"),
      ErrorKind::kConfig);
  EXPECT_EQ(refused(*stage,
                    R"({"predictions": [], "ground_truth": [], "options": {"candidate_top_k": 0}})",
                    "candidate_top_k"),
            ErrorKind::kConfig);
}

TEST(ParseStage, NeedsAListOfIntegers) {
  const auto stage = make_parse_stage(with_tokenizer());
  EXPECT_EQ(refused(*stage, "{}", "response_token_ids"), ErrorKind::kData);
  EXPECT_EQ(refused(*stage, R"({"response_token_ids": [1.5]})", "response_token_ids"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, R"({"response_token_ids": [], "x": 1})", "unknown field"),
            ErrorKind::kConfig);
}

TEST(ParseStage, NamesAMissingModelDirectory) {
  StageOptions options;
  options.model_dir = "/nowhere";
  EXPECT_NE(std::string(test::catch_user_error([&] { make_parse_stage(options); }).what())
                .find("/nowhere"),
            std::string::npos);
}

TEST(SegmentStage, HoldsGroundTruthToTheDataContract) {
  const auto stage = make_segment_stage(with_tokenizer());
  EXPECT_EQ(refused(*stage, segment_line(R"({"bbox_2d": [1, 2, 3, 4]})"), "desc"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, segment_line(R"({"desc": " ", "bbox_2d": [1, 2, 3, 4]})"), "blank"),
            ErrorKind::kData);
  EXPECT_EQ(
      refused(*stage, segment_line(R"({"desc": "a\nb", "bbox_2d": [1, 2, 3, 4]})"), "line break"),
      ErrorKind::kData);
  EXPECT_EQ(refused(*stage, segment_line(R"({"desc": "a\b\u0307x", "bbox_2d": [1, 2, 3, 4]})"),
                    "control character"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, segment_line(R"({"desc": "a <|im_end|>", "bbox_2d": [1, 2, 3, 4]})"),
                    "<|im_end|>"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, segment_line(R"({"desc": "<|coord_5|>", "bbox_2d": [1, 2, 3, 4]})"),
                    "<|coord_5|>"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, segment_line(R"({"desc": "a", "bbox_2d": [1, 2, 3, 1000]})"), "1000"),
            ErrorKind::kData);
  EXPECT_EQ(refused(*stage, segment_line(R"({"desc": "a", "bbox_2d": [-1, 2, 3, 4]})"), "-1"),
            ErrorKind::kData);
}

TEST(SegmentStage, TrimsTheDescOfGroundTruth) {
  const auto stage = make_segment_stage(with_tokenizer());
  const Json answer = run(*stage, segment_line(R"({"desc": "  a cat ", "bbox_2d": [1, 2, 3, 4]})"));
  EXPECT_EQ(
      answer["append_text"],
      R"("object_1": {"desc": "a cat", "bbox_2d": ["<|coord_1|>", "<|coord_2|>", "<|coord_3|>", )"
      R"("<|coord_4|>"]}})");
}

TEST(SegmentStage, ChecksItsOptions) {
  const auto stage = make_segment_stage(with_tokenizer());
  const std::string object = R"({"desc": "a", "bbox_2d": [1, 2, 3, 4]})";
  EXPECT_EQ(refused(*stage, segment_line(object, R"({"ot_cost": "l3"})"), "ot_cost"),
            ErrorKind::kConfig);
  EXPECT_EQ(refused(*stage, segment_line(object, R"({"ot_epsilon": 0})"), "ot_epsilon"),
            ErrorKind::kConfig);
  EXPECT_EQ(refused(*stage, segment_line(object, R"({"ot_iters": 0})"), "ot_iters"),
            ErrorKind::kConfig);
  EXPECT_EQ(refused(*stage, segment_line(object, R"({"ot_iter": 3})"), "ot_iters"),
            ErrorKind::kConfig);
  EXPECT_EQ(
      refused(*stage, segment_line(object, R"({"global_max_length": 10})"), "global_max_length"),
      ErrorKind::kData);
}

TEST(RunStage, ContinuesAfterAWrongLine) {
  const auto stage = make_match_stage({});
  std::istringstream in(
      "{\"id\": 1, \"predictions\": []}\n\nnot json\n{\"id\": \"x\", \"predictions\": [], "
      "\"ground_truth\": []}\n");
  std::ostringstream out;
  EXPECT_EQ(run_stage(*stage, 1, in, out), 3);
  std::istringstream lines(out.str());
  std::string line;
  std::getline(lines, line);
  const Json first = parse_json(line, "out");
  EXPECT_EQ(first["id"], 1);
  EXPECT_EQ(first["error"]["kind"], "data");
  EXPECT_TRUE(first["error"].contains("message") && first["error"].contains("fix"));
  std::getline(lines, line);
  EXPECT_TRUE(parse_json(line, "out").contains("error"));
  std::getline(lines, line);
  EXPECT_EQ(parse_json(line, "out")["id"], "x");
}

TEST(RunStage, EscapesTheLineEndsOfUnicode) {
  const auto stage = make_match_stage({});
  std::istringstream in(
      "{\"id\": \"a\u2028\u2029\u0085b\", \"predictions\": [], \"ground_truth\": []}\n");
  std::ostringstream out;
  EXPECT_EQ(run_stage(*stage, 1, in, out), 0);
  EXPECT_NE(out.str().find("\"a\\u2028\\u2029\\u0085b\""), std::string::npos) << out.str();
}

TEST(SegmentStage, TakesTheOptionsOfTargetPolicies) {
  const auto stage = make_segment_stage(with_tokenizer());
  const std::string object = R"({"desc": "a", "bbox_2d": [1, 2, 3, 4]})";
  const Json rewritten =
      run(*stage,
          segment_line(
              object,
              R"({"target_policy": "rewrite", "rewrite_order": null, "match_policy": "maskiou"})"));
  EXPECT_EQ(rewritten["prefix_len"], 0);
  EXPECT_EQ(refused(*stage, segment_line(object, R"({"target_policy": "rewrit"})"), "rewrite"),
            ErrorKind::kConfig);
  EXPECT_EQ(refused(*stage, segment_line(object, R"({"rewrite_order": "random"})"),
                    "options.rewrite_order"),
            ErrorKind::kConfig);
  EXPECT_EQ(
      refused(*stage, segment_line(object, R"({"incomplete_rollouts": "drop"})"), "keep, empty"),
      ErrorKind::kConfig);
}

TEST(SegmentStage, RefusesCapsAndPromptsThatNoTrainingHas) {
  const auto stage = make_segment_stage(with_tokenizer());
  const std::string object = R"({"desc": "a", "bbox_2d": [1, 2, 3, 4]})";
  for (const char* cap : {"0", "-5"}) {
    EXPECT_EQ(
        refused(*stage, segment_line(object, R"({"global_max_length": )" + std::string(cap) + "}"),
                "at least 1"),
        ErrorKind::kConfig);
  }
  const auto with_prompt = [](const std::string& ids) {
    return R"({"prompt_token_ids": [)" + ids +
           R"(], "response_token_ids": [90], "ground_truth": []})";
  };
  EXPECT_EQ(refused(*stage, with_prompt("361, -7"), "prompt_token_ids[1]"), ErrorKind::kData);
  EXPECT_EQ(refused(*stage, with_prompt("99999999"), "99999999"), ErrorKind::kData);
  const std::string without_prompt =
      R"({"prompt_token_ids": [], "response_token_ids": [], "ground_truth": [], )"
      R"("options": {"target_policy": "rewrite"}})";
  EXPECT_EQ(refused(*stage, without_prompt, "the prompt is empty"), ErrorKind::kData);
}

TEST(MatchStage, TakesTheOptionsOfMatchingThatTheSegmentStageTakes) {
  const auto stage = make_match_stage({});
  const auto line = [](const std::string& options) {
    return R"({"predictions": [], "ground_truth": [], "options": )" + options + "}";
  };
  EXPECT_NO_THROW(run(*stage, line(R"({"match_policy": "maskiou"})")));
  EXPECT_EQ(refused(*stage, line(R"({"match_policy": "nearest"})"), "nearest"), ErrorKind::kConfig);
}

TEST(Stages, TakeNullForTheDefaultOfEveryOption) {
  const auto match = make_match_stage({});
  const auto segment = make_segment_stage(with_tokenizer());
  const std::string of_matching =
      R"("candidate_top_k": null, "maskiou_gate": null, "maskiou_resolution": null, )"
      R"("fp_cost": null, "fn_cost": null, "match_policy": null)";
  EXPECT_NO_THROW(
      run(*match, R"({"predictions": [], "ground_truth": [], "options": {)" + of_matching + "}}"));
  EXPECT_NO_THROW(run(
      *segment,
      segment_line(R"({"desc": "a", "bbox_2d": [1, 2, 3, 4]})",
                   "{" + of_matching +
                       R"(, "ot_cost": null, "ot_epsilon": null, "ot_iters": null, "target_policy":
null, "rewrite_order": null, "incomplete_rollouts": null,
"global_max_length": null})")));
}

}  // namespace rematch
