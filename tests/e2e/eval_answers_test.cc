// `rematch eval JSONL --answers FILE`: answers of other programs.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using testing::HasSubstr;

Json result_of(const test::Program& program, const std::string& name) {
  return read_json_file(program.dir().file("output/" + name + "/eval_results.json"));
}

}  // namespace

TEST(EvalAnswers, ScoresEqualThoseOfTheModelThatGaveThem) {
  test::Program program;
  const std::string val = test::Program::golden("val.jsonl"),
                    model = test::source_path("demo/model");
  const std::string length = " --set custom.extra.rollout_matching.max_new_tokens=200";
  const test::ProcessResult own = program.run("eval " + model + " " + val + length);
  ASSERT_EQ(own.exit_code, 0) << own.err;
  ASSERT_EQ(program.run("rollout " + model + " " + val + length + " --out answers.jsonl").exit_code,
            0);
  const test::ProcessResult scored =
      program.run("eval " + val + " --answers answers.jsonl --format coord_tokens");
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const Json expected = result_of(program, "model"), found = result_of(program, "answers");
  int num_compared = 0;
  for (const auto& item : expected.items()) {
    const std::string& name = item.key();
    if (!name.starts_with("eval_rollout_") || !item.value().is_number()) continue;
    if (name.find("prompt_len") != std::string::npos ||
        name.find("new_tokens") != std::string::npos)
      continue;  // tokens are known of a model only
    ASSERT_TRUE(found.contains(name)) << name;
    EXPECT_EQ(found[name], item.value()) << name;
    ++num_compared;
  }
  EXPECT_GE(num_compared, 15);
  EXPECT_EQ(found["per_class"].size(), expected["per_class"].size());
  EXPECT_EQ(found["num_samples"], expected["num_samples"]);
  EXPECT_EQ(found["coco_ranking"], "order");
  for (const char* file :
       {"answers.json", "answers.samples.jsonl", "answers.predictions.json", "answers.truth.json"})
    EXPECT_TRUE(read_file(program.dir().file(std::string("output/answers/eval/") + file)).size() >
                2)
        << file;
  EXPECT_EQ(program.run("report output/answers --out page.html").exit_code, 0);
  EXPECT_EQ(program.run("compare output/model output/answers").exit_code, 0);
}

TEST(EvalAnswers, CountsAbsentClassesAndEmptyPicturesWithABox) {
  test::Program program;
  const auto record = [](const char* image, const char* prompt, const char* objects) {
    return fmt::format(
        R"({{"images": ["{}"], "width": 100, "height": 100, "prompt": "{}", "objects": [{}]}})"
        "\n",
        image, prompt, objects);
  };
  const char *cat = R"({"desc": "cat", "bbox_2d": [0, 0, 500, 500]})",
             *both = R"({"desc": "cat", "bbox_2d": [0, 0, 500, 500]},
                        {"desc": "dog", "bbox_2d": [500, 500, 900, 900]})";
  std::string two = both;
  two.erase(two.find('\n'), 1);
  program.dir().write("val.jsonl", record("a.png", "Find: cat, dog, bird.", cat) +
                                       record("b.png", "Find: dog, cat.", two.c_str()) +
                                       record("c.png", "Find: Dog, mouse, cat.", "") +
                                       record("d.png", "Look.", "") +
                                       record("e.png", "Find: cat, dog.", ""));
  const auto answer = [](const char* image, const std::vector<std::string>& names) {
    std::vector<std::string> entries;
    for (const std::string& name : names)
      entries.push_back(R"({\"bbox_2d\": [0, 0, 500, 500], \"label\": \")" + name + R"(\"})");
    return fmt::format(R"({{"image": "{}", "text": "[{}]"}})"
                       "\n",
                       image, join(entries, ", "));
  };
  // Absent: dog and bird of a, none of b, dog, mouse and cat of c; d lists nothing; the answer to e
  // cannot be read.
  program.dir().write("server.jsonl",
                      answer("a.png", {"cat", "dog", "horse"}) + answer("b.png", {"cat"}) +
                          answer("c.png", {"dog", "DOG", "mouse"}) + answer("d.png", {}) +
                          R"({"image": "e.png", "text": "[{\"bbox_2d\": [0, no"})"
                          "\n");
  const test::ProcessResult scored =
      program.run("eval val.jsonl --answers server.jsonl --format qwen_json");
  ASSERT_EQ(scored.exit_code, 0) << scored.err;
  const Json scores = result_of(program, "server");
  EXPECT_EQ(scores["eval_rollout_absent_names"], 5);
  EXPECT_EQ(scores["eval_rollout_absent_answered"], 3.0 / 5);
  EXPECT_EQ(scores["eval_rollout_empty_answered"], 1.0 / 2);
  EXPECT_THAT(scored.out, HasSubstr("absent classes answered"));
  EXPECT_THAT(scored.out, HasSubstr("empty pictures answered"));
  EXPECT_THAT(program.run("compare output/server").out, HasSubstr("absent classes answered"));
  EXPECT_THAT(program.run("explain 'absent classes answered'").out,
              HasSubstr("a prompt lists and no object"));
}

TEST(EvalAnswers, TakesDigitsOfAnyServerAndTheLinesOfPredict) {
  test::Program program;
  program.dir().write(
      "val.jsonl",
      R"({"images": ["a.png"], "width": 200, "height": 100, "objects": [{"desc": "cat", )"
      R"("bbox_2d": [100, 200, 500, 999]}]})"
      "\n"
      R"({"images": ["b.png"], "width": 200, "height": 100, "objects": [{"desc": "dog", )"
      R"("bbox_2d": [10, 20, 300, 400]}]})"
      "\n");
  const std::string cat =
      R"({"image": "a.png", "text": "[{\"bbox_2d\": [100, 200, 501, 1000], \"label\": \"cat\"}]"})"
      "\n";
  program.dir().write("server.jsonl", cat + R"({"id": 1, "response": "no idea"})");
  const test::ProcessResult both =
      program.run("eval val.jsonl --answers server.jsonl --format qwen_json");
  ASSERT_EQ(both.exit_code, 0) << both.err;
  const Json scores = result_of(program, "server");
  EXPECT_EQ(scores["eval_rollout_recall"], 0.5);
  EXPECT_EQ(scores["eval_rollout_precision"], 1.0);
  EXPECT_EQ(scores["eval_rollout_parse_malformed_rate"], 0.5);
  program.dir().write(
      "bare.jsonl",
      R"({"image": "a.png", "text": "[{\"bbox_2d\": [100, 200, 501, 999]}]"})"
      "\n"
      R"({"id": 1, "text": "[{\"bbox_2d\": [0.1, 0.2, 0.3, 0.4], \"label\": \"dog\"}]"})");
  const test::ProcessResult bare =
      program.run("eval val.jsonl --answers bare.jsonl --format qwen_json");
  EXPECT_THAT(bare.err, HasSubstr("2 entries of the answers do not count: without a name"));
  EXPECT_THAT(bare.err, HasSubstr("--format qwen_boxes reads 1 object in 2 answers"));
  const std::string box = R"([{\"bbox_2d\": [1, 2, 3, 4], \"label\": \"cat\"}])";
  program.dir().write("twice.jsonl", R"({"id": 0, "text": "```json\n)" + box +
                                         R"(\n```\nand\n```json\n)" + box +
                                         R"(\n```"})"
                                         "\n"
                                         R"({"id": 1, "text": "<think>)" +
                                         box +
                                         R"(</think>[{\"bbox_2d\": [1, 2, 3, 4], \"label\": )"
                                         R"(\"bbox_2d\"}]"})"
                                         "\n");
  EXPECT_THAT(program.run("eval val.jsonl --answers twice.jsonl --format qwen_json").err,
              HasSubstr("1 entry of the answers does not count: without a name where qwen_json"));
  program.dir().write("one.jsonl", cat);
  const test::ProcessResult missing =
      program.run("eval val.jsonl --answers one.jsonl --format qwen_json");
  EXPECT_EQ(missing.exit_code, 3);
  EXPECT_THAT(missing.err, HasSubstr("1 of 2 records: val.jsonl:2"));
  const test::ProcessResult part =
      program.run("eval val.jsonl --answers one.jsonl --format qwen_json --answered-only");
  EXPECT_EQ(part.exit_code, 0) << part.err;
  EXPECT_THAT(part.err, HasSubstr("1 of 2 records have no answer"));
  EXPECT_EQ(result_of(program, "one")["num_samples"], 1);
  const test::ProcessResult pixels = program.run(
      "eval val.jsonl --answers one.jsonl --format qwen2_5_json --answered-only");  // 196 x 112
  EXPECT_EQ(pixels.exit_code, 0) << pixels.err;
  EXPECT_EQ(result_of(program, "one")["eval_rollout_matched"], 0.0) << "501 is beyond 196";
  EXPECT_THAT(program.run("eval val.jsonl --answers one.jsonl").err,
              HasSubstr("--format qwen_json"));
}

TEST(EvalAnswers, ScoresBoxesWithoutNames) {
  test::Program program;
  program.dir().write(
      "val.jsonl",
      R"({"images": ["a.png"], "width": 200, "height": 100, "objects": [{"bbox_2d": [100, 200, )"
      R"(500, 999]}]})"
      "\n");
  program.dir().write("a.jsonl",
                      R"({"image": "a.png", "text": "[{\"bbox_2d\": [100, 200, 501, 1000]}]"})");
  const test::ProcessResult result =
      program.run("eval val.jsonl --answers a.jsonl --format qwen_boxes");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result_of(program, "a")["eval_rollout_f1"], 1.0);
  EXPECT_EQ(result_of(program, "a")["eval_rollout_f1_labels"], 1.0);
}

TEST(EvalAnswers, AnAnswerOfTwentyThousandBoxesTakesSeconds) {
  test::Program program;
  Json boxes = Json::array();
  for (int i = 0; i < 20000; ++i) {
    const int x = i % 97 * 10, y = i % 89 * 10;
    boxes.push_back({{"label", "cat"}, {"bbox_2d", {x, y, x + 4 + i % 7, y + 4 + i % 5}}});
  }
  Json truth = Json::array();
  for (int i = 0; i < 20; ++i)
    truth.push_back({{"desc", "cat"}, {"bbox_2d", {i * 40, 10, i * 40 + 30, 60}}});
  const auto line = [](const Json& value) { return value.dump() + "\n"; };
  program.dir().write(
      "val.jsonl",
      line({{"images", {"a.png"}}, {"width", 200}, {"height", 100}, {"objects", truth}}));
  program.dir().write("answers.jsonl", line({{"image", "a.png"}, {"text", boxes.dump()}}));
  const auto start = std::chrono::steady_clock::now();
  const test::ProcessResult result =
      program.run("eval val.jsonl --answers answers.jsonl --format qwen_json");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  EXPECT_EQ(result_of(program, "answers")["eval_rollout_pred_per_gt"], 1000);
}

TEST(EvalAnswers, ACollapsedNameIsAVerdict) {
  test::Program program;
  std::string records, answers;
  for (int i = 0; i < 30; ++i) {
    const std::string image = "i" + std::to_string(i) + ".png";
    records +=
        R"({"images": [")" + image +
        R"("], "width": 200, "height": 100, "objects": [{"desc": "cola", "bbox_2d": [100, 200, )"
        R"(500, 900]}]})"
        "\n";
    answers += R"({"image": ")" + image +
               R"(", "text": "[{\"bbox_2d\": [100, 200, 501, 901], \"label\": \")" +
               (i < 3 ? "cola" : "tobacco product") +
               R"(\"}]"})"
               "\n";
  }
  program.dir().write("val.jsonl", records);
  program.dir().write("a.jsonl", answers);
  const test::ProcessResult result =
      program.run("eval val.jsonl --answers a.jsonl --format qwen_json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err + result.out,
              HasSubstr("90 % of answered names are \"tobacco product\", which no truth has"));
  ASSERT_EQ(program.run("report output/a --out page.html").exit_code, 0);
  EXPECT_THAT(read_file(program.dir().file("page.html")), HasSubstr("which no truth has"));
}

// Pixels are legal thousandths: only the truth tells them apart.
TEST(EvalAnswers, NamesTheFormatWhoseUnitFindsTheTruth) {
  test::Program program;
  std::string lines, answers;
  for (int i = 0; i < 8; ++i) {
    const int x = 40 + 30 * i;  // bins; the image has 336 x 336 pixels, which no resize changes
    lines +=
        fmt::format(
            R"({{"images": ["{}.png"], "width": 336, "height": 336, "objects": [{{"desc": "cat", )"
            R"("bbox_2d": [{}, 500, {}, 800]}}]}})",
            i, x, x + 400) +
        "\n";
    answers +=
        fmt::format(
            R"({{"id": {}, "text": "[{{\"bbox_2d\": [{}, 168, {}, 269], \"label\": \"cat\"}}]"}})",
            i, x * 336 / 1000, (x + 400) * 336 / 1000) +
        "\n";
  }
  program.dir().write("val.jsonl", lines);
  program.dir().write("answers.jsonl", answers);
  const test::ProcessResult wrong =
      program.run("eval val.jsonl --answers answers.jsonl --format qwen_json");
  EXPECT_EQ(wrong.exit_code, 0) << wrong.err;
  EXPECT_THAT(wrong.err, HasSubstr("--format qwen2_5_json finds 8 objects of the truth"));
  const test::ProcessResult right =
      program.run("eval val.jsonl --answers answers.jsonl --format qwen2_5_json");
  EXPECT_EQ(right.err.find("of the truth"), std::string::npos) << right.err;
}

TEST(EvalAnswers, ABatchWithFailuresIsScoredForTheRestInANamedUnit) {
  test::Program program;
  const std::string record = R"(, "width": 200, "height": 100, "objects": [{"desc": "cat", )"
                             R"("bbox_2d": [100, 200, 500, 999]}]})"
                             "\n";
  program.dir().write("val.jsonl", R"({"images": ["a.png"])" + record + R"({"images": ["b.png"])" +
                                       record + R"({"images": ["c.png"])" + record);
  program.dir().write(
      "b.jsonl",
      R"({"custom_id": "0", "choices": [{"message": {"content": )"
      R"("[{\"bbox_2d\": [20, 22, 98, 112], )"
      R"(\"label\": \"cat\"}]"}}]})"
      "\n"
      R"({"custom_id": "1", "response": {"status_code": 429, "body": {"error": "busy"}}})"
      "\n"
      R"({"custom_id": "2", "choices": [{"message": {"content": null}}]})");
  const test::ProcessResult result =
      program.run("eval val.jsonl --answers b.jsonl --format qwen2_5_json");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("1 of 3 records have no answer"));
  EXPECT_THAT(result.err, HasSubstr("b.jsonl:2 (status 429)"));
  EXPECT_THAT(result.err, HasSubstr("1 answer without content"));
  EXPECT_THAT(result.err, HasSubstr("multiples of 28 and 3136 to 12845056"));
  EXPECT_EQ(result_of(program, "b")["num_samples"], 2);
  EXPECT_EQ(result_of(program, "b")["eval_rollout_recall"], 0.5);
  const test::ProcessResult other = program.run(
      "eval val.jsonl --answers b.jsonl --format qwen2_5_json --set template.max_pixels=6400");
  EXPECT_THAT(other.err, HasSubstr("3136 to 6400"));
  EXPECT_EQ(result_of(program, "b")["eval_rollout_recall"], 0.0) << "read in another size";
}

}  // namespace rematch
