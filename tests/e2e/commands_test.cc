#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {

TEST(Commands, EvalPrintsATableAndWritesEveryMetric) {
  test::Program program;
  const test::ProcessResult result = program.run("eval " + program.config());
  ASSERT_EQ(result.exit_code, 0) << result.err;
  for (const char* row : {"label F1 @ IoU 0.5", "F1 @ IoU 0.5", "precision", "COCO AP50",
                          "malformed answers", "predictions per truth"})
    EXPECT_NE(result.out.find(row), std::string::npos) << row;
  EXPECT_EQ(result.out.find("eval_rollout_gating_rejections"), std::string::npos);
  EXPECT_LE(std::count(result.out.begin(), result.out.end(), '\n'), 20) << result.out;
  const std::string all = program.run("eval --all " + program.config()).out;
  EXPECT_NE(all.find("eval_rollout_gating_rejections"), std::string::npos);
  EXPECT_NE(all.find("label F1"), std::string::npos);
  std::istringstream lines(all);
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << line;
  const Json json =
      parse_json(read_file(program.run_dir() + "/eval_results.json"), "eval_results.json");
  for (const char* name : {"precision",
                           "recall",
                           "f1",
                           "pred_objects",
                           "gt_objects",
                           "matched",
                           "fp",
                           "fn",
                           "gating_rejections",
                           "parse_dropped_invalid",
                           "parse_truncated_rate",
                           "parse_malformed_rate",
                           "sample_valid_pred_rate",
                           "sample_any_match_rate",
                           "matched_maskiou_mean",
                           "label_accuracy",
                           "f1_labels",
                           "precision_labels",
                           "recall_labels",
                           "duplicates",
                           "pred_per_gt",
                           "f1_iou50",
                           "f1_labels_iou50"}) {
    EXPECT_TRUE(json.contains(std::string("eval_rollout_") + name)) << name;
  }
  for (const char* name : {"coco_ap", "coco_ap50", "coco_ap75", "coco_ar_100", "coco_per_class"})
    EXPECT_TRUE(json.contains(name)) << name;
  EXPECT_EQ(json["num_samples"], 4);
}

TEST(Commands, CheckShowsWhereAValueCameFrom) {
  test::Program program;
  const test::ProcessResult result =
      program.run("check " + program.config("training: {seed: 7}\n") +
                  " --all --set training.learning_rate=3e-4");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("run.yaml:2"), std::string::npos);
  EXPECT_NE(result.out.find("base.yaml"), std::string::npos);
  EXPECT_NE(result.out.find("--set training.learning_rate"), std::string::npos);
}

TEST(Commands, RolloutWritesALineForEverySample) {
  test::Program program;
  const test::ProcessResult result =
      program.run("rollout " + program.config() + " --split train --out lines.jsonl");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  std::istringstream lines(read_file(program.dir().file("lines.jsonl")));
  std::string line;
  int64_t count = 0;
  while (std::getline(lines, line)) {
    const Json json = parse_json(line, "lines.jsonl");
    EXPECT_EQ(json["sample_id"], count++);
    for (const char* name : {"text", "response_token_ids", "prompt_token_ids", "status",
                             "predictions", "ground_truth", "pairs", "target"}) {
      EXPECT_TRUE(json.contains(name)) << name;
    }
    EXPECT_EQ(json["target"]["policy"], "append");
    EXPECT_EQ(json["target"]["token_ids"].size(), json["target"]["labels"].size());
  }
  EXPECT_EQ(count, 8);
}

// OpenMP prints what it read when it was loaded; its default is 300000 turns.
TEST(Commands, ThreadsSpinBrieflyWhileTheyWait) {
  test::Program program;
  const auto turns = [&](const std::string& environment) {
    const std::string shown =
        program.script("OMP_DISPLAY_ENV=verbose " + environment + " $R --version").err;
    const size_t at = shown.find("GOMP_SPINCOUNT = '") + 18;
    return shown.substr(at, shown.find('\'', at) - at);
  };
  EXPECT_EQ(turns(""), "2000");
  EXPECT_EQ(turns("GOMP_SPINCOUNT=7"), "7");
  EXPECT_GT(turns("OMP_WAIT_POLICY=active").size(), 6u);  // of the user
}

TEST(Commands, HelpNamesEveryCommand) {
  test::Program program;
  const test::ProcessResult result = program.run("--help");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* name :
       {"train", "eval", "check", "rollout", "probe", "add-coord-tokens", "stage"})
    EXPECT_NE(result.out.find(name), std::string::npos) << name;
}

TEST(Commands, AStageAnswersGoodLinesAndReportsBadOnes) {
  test::Program program;
  const test::ProcessResult result = program.run_stage(
      "tokenize --model " + test::Program::model(),
      "{\"id\": 1, \"text\": \"a cat\"}\n{\"id\": 2, \"txt\": 1}\nnot json\n{\"id\": "
      "4, \"token_ids\": [64]}\n");
  EXPECT_EQ(result.exit_code, 3);
  std::istringstream lines(result.out);
  std::vector<Json> answers;
  std::string line;
  while (std::getline(lines, line)) answers.push_back(parse_json(line, "out"));
  ASSERT_EQ(answers.size(), 4u);
  EXPECT_EQ(answers[0]["id"], 1);
  EXPECT_TRUE(answers[0].contains("pieces"));
  EXPECT_TRUE(answers[1]["error"].contains("fix"));
  EXPECT_EQ(answers[2]["error"]["kind"], "data");
  EXPECT_EQ(answers[3]["text"], "a");
}

TEST(Commands, AStageThatIsNotInstalledNamesTheProgramThatHasIt) {
  test::Program program;
  for (const char* name :
       {"tokenize", "render", "pixels", "generate --backend hf", "logits", "loss", "grad"}) {
    const test::ProcessResult result = program.run("stage " + std::string(name));
    EXPECT_EQ(result.exit_code, 2) << name;
    EXPECT_NE(result.err.find("run `rematch-stages stage"), std::string::npos) << result.err;
  }
}

TEST(Commands, TheStagesProgramHasAllStagesAndThoseOfRematchOnly) {
  test::Program program;
  const test::ProcessResult all = program.run_stage("--help", ""),
                            own = program.run("stage --help");
  for (const char* part : {"response ids → objects", "lengths of waiting segments"}) {
    EXPECT_NE(all.out.find(part), std::string::npos) << all.out;
    EXPECT_NE(own.out.find(part), std::string::npos) << own.out;
  }
  EXPECT_NE(all.out.find("prompts → answers"), std::string::npos) << all.out;
  EXPECT_EQ(own.out.find("prompts → answers"), std::string::npos) << own.out;
}

TEST(Commands, EveryTensorStageAnswers) {
  test::Program program;
  const std::string model = " --model " + test::Program::model();
  const std::string image = test::Program::golden("images/0.png");
  const test::ProcessResult rendered = program.run_stage(
      "render" + model,
      "{\"id\": \"p\", \"messages\": [{\"role\": \"user\", \"content\": [{\"type\": "
      "\"image\"}, {\"type\": \"text\", \"text\": \"hi\"}]}], \"images\": [\"" +
          image + "\"], \"add_generation_prompt\": true}\n");
  ASSERT_EQ(rendered.exit_code, 0) << rendered.out << rendered.err;
  const Json prompt = parse_json(rendered.out, "render");
  Json input;
  input["id"] = "a";
  input["token_ids"] = prompt["token_ids"];
  input["images"] = {image};
  const test::ProcessResult logits =
      program.run_stage("logits" + model + " --out out", input.dump() + "\n");
  ASSERT_EQ(logits.exit_code, 0) << logits.out << logits.err;
  EXPECT_TRUE(std::filesystem::exists(program.dir().file("out/a.safetensors")));

  Json segment = {{"token_ids", prompt["token_ids"]}, {"images", {image}}};
  const size_t length = prompt["token_ids"].size();
  std::vector<int> labels(length, -100);
  labels.back() = prompt["token_ids"].back();
  segment["labels"] = labels;
  segment["coord_slots"] = Json::array();
  Json grad;
  grad["id"] = "g";
  grad["segments"] = Json::array({segment});
  const test::ProcessResult gradient =
      program.run_stage("grad" + model + " --out out", grad.dump() + "\n");
  ASSERT_EQ(gradient.exit_code, 0) << gradient.out << gradient.err;
  EXPECT_GT(parse_json(gradient.out, "grad")["loss"].get<double>(), 0.0);

  const test::ProcessResult generated =
      program.run_stage("generate" + model,
                        "{\"id\": 1, \"messages\": [{\"role\": \"user\", \"content\": \"hi\"}], "
                        "\"max_new_tokens\": 5}\n");
  ASSERT_EQ(generated.exit_code, 0) << generated.out << generated.err;
  EXPECT_LE(parse_json(generated.out, "generate")["response_token_ids"].size(), 5u);
}

}  // namespace rematch
