// `rematch eval`'s files, `rematch compare` and `rematch report` as a user starts them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {

TEST(ReportCommands, FilesOfAnEvaluationHaveTheClassesOfItsCocoScores) {
  test::Program program;
  std::istringstream lines(read_file(test::Program::golden("val.jsonl")));
  std::string records;
  for (std::string line; std::getline(lines, line);) {
    Json record = parse_json(line, "val.jsonl");
    record["images"][0] = test::Program::golden(record["images"][0].get<std::string>());
    for (size_t i = 0; i < record["objects"].size(); i += 2) {
      std::string label = record["objects"][i]["desc"].get<std::string>();
      std::transform(label.begin(), label.end(), label.begin(), ::toupper);
      record["objects"][i]["desc"] = label;
    }
    records += record.dump() + "\n";
  }
  program.dir().write("val.jsonl", records);
  // COCO's classes are normalised under either rule (BEHAVIOUR 15).
  Json files[2];
  for (const bool exact : {false, true}) {
    const test::ProcessResult result = program.run(
        "eval " + program.config() +
        " --set custom.val_jsonl=val.jsonl --set custom.extra.rollout_matching.label_match=" +
        (exact ? "exact" : "normalized"));
    ASSERT_EQ(result.exit_code, 0) << result.err;
    const std::string base = program.run_dir() + "/eval/tiny_tied";
    files[exact] = {read_json_file(base + ".truth.json"),
                    read_json_file(base + ".predictions.json")};
  }
  EXPECT_FALSE(files[0][0]["categories"].empty());
  EXPECT_EQ(files[0], files[1]);
}

TEST(ReportCommands, EvaluationsOfTwoCheckpointsAreComparedAndReported) {
  test::Program program;
  const std::string config =
      program.config("training: {save_strategy: steps, save_steps: 1, logging_steps: 1}\n");
  ASSERT_EQ(program.run("train " + config).exit_code, 0);
  for (const char* checkpoint : {"checkpoint-1", "checkpoint-2"}) {
    const test::ProcessResult result =
        program.run("eval --all " + config + " --set model.model=out/run/" + checkpoint);
    ASSERT_EQ(result.exit_code, 0) << result.err;
    EXPECT_NE(result.out.find("label F1"), std::string::npos);
    const std::string base = program.run_dir() + "/eval/" + checkpoint;
    const Json scores = read_json_file(base + ".json");
    EXPECT_EQ(scores["model"], std::string("out/run/") + checkpoint);
    int64_t truths = 0;
    for (const Json& row : scores["per_count"]) truths += row["truths"].get<int64_t>();
    EXPECT_EQ(truths, scores["eval_rollout_gt_objects"].get<int64_t>());
    EXPECT_FALSE(scores["per_class"].empty());
    EXPECT_TRUE(read_json_file(base + ".predictions.json").is_array());
    EXPECT_EQ(read_json_file(base + ".truth.json")["images"].size(), 4u);
  }
  for (const char* command : {"report out/run --out run.yaml", "compare out/run --out run.yaml"})
    EXPECT_EQ(program.run(command).exit_code, 2) << "would replace a configuration";
  const test::ProcessResult compared = program.run("compare out/run --out table.md");
  ASSERT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_NE(compared.out.find("run/checkpoint-1"), std::string::npos) << compared.out;
  EXPECT_NE(read_file(program.dir().file("table.md")).find("| score |"), std::string::npos);
  const test::ProcessResult reported =
      program.run("report out/run --out report.html --sheet sheet.png");
  ASSERT_EQ(reported.exit_code, 0) << reported.err;
  const std::string html = read_file(program.dir().file("report.html"));
  EXPECT_NE(html.find(R"("image":"/9j/)"), std::string::npos);  // a JPEG in base64
  EXPECT_EQ(read_file(program.dir().file("sheet.png")).substr(1, 3), "PNG");
  EXPECT_NE(html.find("run.yaml"), std::string::npos);
  // One file of a checkpoint alone.
  EXPECT_EQ(program.run("compare out/run/eval/checkpoint-2.json").exit_code, 0);
}

TEST(ReportCommands, TheTableOfClassesHoldsNoControlCharacters) {
  test::Program program;
  program.dir().write("val.jsonl",
                      "{\"images\": [\"" + test::Program::golden("images/0.png") +
                          "\"], \"width\": 64, \"height\": 64, \"objects\": [{\"desc\": \"x\xC2\x9B"
                          "31m\", \"bbox_2d\": [3, 2, 30, 40]}]}\n");
  const test::ProcessResult result =
      program.run("eval --all " + program.config("custom: {val_jsonl: val.jsonl}\n"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("x\\x9b31m"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find('\x9B'), std::string::npos) << result.out;
}

TEST(ReportCommands, HelpShowsTwoExamplesAndMistakesAreNamed) {
  test::Program program;
  for (const std::string name : {"compare", "report"}) {
    const test::ProcessResult help = program.run(name + " --help");
    EXPECT_EQ(help.exit_code, 0);
    const size_t first = help.out.find("rematch " + name, help.out.find("Examples:"));
    EXPECT_NE(help.out.find("rematch " + name, first + 1), std::string::npos);
    const test::ProcessResult missing = program.run(name + " nowhere");
    EXPECT_EQ(missing.exit_code, 4);
    EXPECT_NE(missing.err.find("nowhere"), std::string::npos);
    program.dir().write("empty/x", "");
    EXPECT_EQ(program.run(name + " empty").exit_code, 3);
    EXPECT_EQ(program.run(name).exit_code, 2);
    program.dir().write("runs/a/logging.jsonl", "{\"step\": 1, \"loss\": 2}\n");
    const test::ProcessResult parent = program.run(name + " runs");
    EXPECT_NE(parent.err.find("give the runs in it: runs/a"), std::string::npos) << parent.err;
  }
  program.dir().write("runs/b/eval_results.json",
                      "{\"eval_rollout_f1\": 0.5, \"num_samples\": 2, \"model\": \"m\"}\n");
  const test::ProcessResult compared = program.run("compare runs/a runs/b");
  EXPECT_EQ(compared.exit_code, 0) << compared.err;
  EXPECT_NE(compared.err.find("runs/a has no evaluation and no scores here"), std::string::npos)
      << compared.err;
}

TEST(ReportCommands, EvaluationsOverDifferentSetsAreNotJudged) {
  test::Program program;
  const std::string config = program.config();
  const auto evaluate = [&](const std::string& options) {
    const test::ProcessResult result = program.run("eval " + config + options);
    ASSERT_EQ(result.exit_code, 0) << result.err;
  };
  evaluate(" --set training.run_name=all");
  evaluate(" --set training.run_name=again");
  evaluate(" --set training.run_name=two --set custom.val_sample_limit=2");
  evaluate(" --set training.run_name=exact --set custom.extra.rollout_matching.label_match=exact");
  evaluate(" --set training.run_name=asked --set custom.user_prompt=Boxes?");
  const auto compared = [&](const std::string& other) {
    const test::ProcessResult result = program.run("compare out/all out/" + other);
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return result.out + result.err;
  };
  const std::string different = "these evaluations are over different sets";
  EXPECT_EQ(compared("again").find(different), std::string::npos);
  EXPECT_NE(compared("again").find("last - first"), std::string::npos);
  for (const char* other : {"two", "exact", "asked"}) {
    EXPECT_NE(compared(other).find(different), std::string::npos) << other;
    EXPECT_EQ(compared(other).find("last - first"), std::string::npos) << other;
  }
}

}  // namespace rematch
