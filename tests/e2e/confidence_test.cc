// Scores of objects (BEHAVIOUR 20) in the files of the program, with the demonstration's model.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::string demo_model() { return test::source_path("tests/shapes/model"); }

std::vector<Json> scored_lines_of(const std::string& text) {
  std::vector<Json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(parse_json(line, "out"));
  return lines;
}

/// Scores of all objects that `predict` found.
std::vector<double> scores_of(const std::vector<Json>& lines, const char* key = "score") {
  std::vector<double> scores;
  for (const Json& line : lines) {
    for (const Json& object : line["objects"]) scores.push_back(object.at(key).get<double>());
  }
  return scores;
}

/// A run of one step whose validation records and synonyms have relative paths.
test::ProcessResult train_on_relative_files(const test::Program& program,
                                            const std::string& output_dir) {
  std::filesystem::create_directory_symlink(test::Program::golden(""), program.dir().file("data"));
  program.dir().write("names.json", R"({"shape": ["cup"]})");
  return program.run(
      "train " +
      program.config("custom: {val_jsonl: data/val.jsonl, extra: {rollout_matching: {label_match: "
                     "names.json}}}\ntraining: {max_steps: 1, save_steps: 1, output_dir: " +
                     output_dir + "}\n"));
}

}  // namespace

TEST(Confidence, PredictWritesItAndLeavesOutWhatIsBelowTheLeast) {
  test::Program program;
  std::filesystem::copy(demo_model(), program.dir().file("model"));
  program.dir().write("model/rematch_scores.json",
                      R"({"eval_set": "", "points": [[1e-6, 0.25], [0.5, 0.75]]})");
  const std::string command = "predict model " + test::Program::golden("images") + " --draw drawn";
  const test::ProcessResult all = program.run(command);
  ASSERT_EQ(all.exit_code, 0) << all.err;
  std::vector<double> scores = scores_of(scored_lines_of(all.out));
  const std::vector<double> raw = scores_of(scored_lines_of(all.out), "raw_score");
  ASSERT_GE(scores.size(), 8u);
  for (size_t i = 0; i < scores.size(); ++i) {
    EXPECT_TRUE(raw[i] > 0 && raw[i] <= 1) << raw[i];
    EXPECT_TRUE(scores[i] > 0.24 && scores[i] < 0.76) << scores[i];
    EXPECT_EQ(scores[i] < scores[0], raw[i] < raw[0]) << "ranks stay";
  }
  std::sort(scores.begin(), scores.end());
  EXPECT_LT(scores.front(), scores.back());

  const double least = scores[scores.size() / 2];
  const test::ProcessResult certain =
      program.run(command + " --min-score " + std::to_string(least - 1e-6));
  ASSERT_EQ(certain.exit_code, 0) << certain.err;
  std::vector<double> kept = scores_of(scored_lines_of(certain.out));
  std::sort(kept.begin(), kept.end());
  EXPECT_EQ(kept, std::vector<double>(std::lower_bound(scores.begin(), scores.end(), least - 1e-6),
                                      scores.end()));

  ASSERT_EQ(program.run(command + " --format coco --out found.json").exit_code, 0);
  const Json document = read_json_file(program.dir().file("found.json"));
  std::vector<double> coco;
  for (const Json& one : document["annotations"]) coco.push_back(one["score"].get<double>());
  std::sort(coco.begin(), coco.end());
  EXPECT_EQ(coco, scores);
  for (const char* share : {"1.5", "nan"})
    EXPECT_EQ(program.run(command + " --min-score " + share).exit_code, 2) << share;
}

TEST(Confidence, ACheckpointWithoutAnEvaluationHasRawScoresOnly) {
  test::Program program;
  const test::ProcessResult all = program.run("predict " + demo_model() + " " +
                                              test::Program::golden("images") + " --min-score 0.5");
  ASSERT_EQ(all.exit_code, 0) << all.err;
  EXPECT_NE(all.err.find("--min-score left nothing out"), std::string::npos) << all.err;
  EXPECT_GE(scores_of(scored_lines_of(all.out), "raw_score").size(), 8u);
  EXPECT_EQ(all.out.find("\"score\""), std::string::npos);
}

TEST(Confidence, ATrainedCheckpointKnowsWhatItsScoresAreWorth) {
  test::Program program;
  const std::string config = program.config(
                                 "template: {system: List the objects as JSON.}\n"
                                 "custom: {user_prompt: Find every shape.}\n"
                                 "training: {max_steps: 1, learning_rate: 1.0e-7, "
                                 "eval_strategy: steps, eval_steps: 1, "
                                 "save_steps: 1}\n") +
                             " --set model.model=" + demo_model() +
                             " --set custom.extra.rollout_matching.max_new_tokens=100";
  const test::ProcessResult trained = program.run("train " + config);
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  const std::string stored = program.run_dir() + "/checkpoint-1/rematch_scores.json";
  EXPECT_FALSE(read_json_file(stored)["eval_set"].get<std::string>().empty());
  const Json before = read_json_file(stored);
  EXPECT_EQ(before["eval_set"].get<std::string>().find("scoring"), std::string::npos) << "as usual";
  std::filesystem::remove(stored);
  EXPECT_EQ(program.run("eval out/run/checkpoint-1 --set custom.user_prompt=Hello").exit_code, 0);
  EXPECT_FALSE(std::filesystem::exists(stored)) << "another question";
  const test::ProcessResult evaluated = program.run("eval out/run/checkpoint-1");
  EXPECT_NE(evaluated.err.find("rematch_scores.json"), std::string::npos) << evaluated.err;
  const Json after = read_json_file(stored);
  EXPECT_EQ(after["eval_set"], before["eval_set"]);
  EXPECT_EQ(before["step"], 1);
  EXPECT_EQ(after["step"], 1);
  ASSERT_EQ(after["points"].size(), before["points"].size());
  for (size_t i = 0; i < after["points"].size(); ++i) {
    for (size_t k = 0; k < 2; ++k) {
      EXPECT_NEAR(after["points"][i][k].get<double>(), before["points"][i][k].get<double>(), 1e-5)
          << "the same answers, in other batches";
    }
  }
  const test::ProcessResult asked =
      program.run("predict out/run/checkpoint-1 " + test::Program::golden("images/0.png") +
                  " --user 'What is here?'");
  EXPECT_NE(asked.err.find("measured with the prompt of training"), std::string::npos) << asked.err;
  Json of_another = after;  // question
  of_another["eval_set"] = "64 records 1, labels exact, prompts 2";
  write_file_atomic(stored, of_another.dump());
  ASSERT_EQ(program.run("eval out/run/checkpoint-1").exit_code, 0);
  EXPECT_EQ(read_json_file(stored)["eval_set"], before["eval_set"]);
  Json of_the_start = after;
  of_the_start["step"] = 0;
  write_file_atomic(stored, of_the_start.dump());
  const std::string checkpoint = "out/run/checkpoint-1";
  EXPECT_NE(program.run("predict " + checkpoint + " " + test::Program::golden("images/0.png"))
                .err.find("measured at step 0, and this is step 1"),
            std::string::npos);
  ASSERT_EQ(program.run("eval " + checkpoint).exit_code, 0);
  EXPECT_EQ(read_json_file(stored)["step"], 1);
}

TEST(EvalOfARun, DecodesAndMatchesAsItsOwnEvaluation) {
  test::Program program;
  const std::string config = program.config(
                                 "template: {system: List the objects as JSON.}\n"
                                 "custom: {user_prompt: Find every shape.}\n"
                                 "training: {max_steps: 1, learning_rate: 1.0e-7, "
                                 "eval_strategy: steps, eval_steps: 1, save_steps: 1}\n") +
                             " --set model.model=" + demo_model();
  const std::string keys = " --set custom.extra.rollout_matching.";
  ASSERT_EQ(program
                .run("train " + config + keys + "max_new_tokens=100" + keys + "maskiou_gate=0.8" +
                     keys + "repetition_penalty=1.2")
                .exit_code,
            0);
  Json measured;
  for (const std::string& line : split(read_file(program.run_dir() + "/logging.jsonl"), '\n')) {
    if (line.find("eval_rollout_f1\"") != line.npos) measured = parse_json(line, "");
  }
  for (const std::string set : {"", " --set custom.extra.rollout_matching.maskiou_gate=0.1"}) {
    ASSERT_EQ(program.run("eval out/run/checkpoint-1" + set).exit_code, 0);
    const Json again = read_json_file(program.run_dir() + "/eval_results.json");
    for (const char* key : {"eval_rollout_f1", "eval_rollout_matched"})
      EXPECT_EQ(again[key] == measured[key], set.empty()) << key;
    EXPECT_EQ(again["eval_set"] == measured["eval_set"], set.empty());
  }
}

TEST(EvalOfARun, TakesItsOwnFilesFromAnyDirectory) {
  test::Program program;
  const test::ProcessResult trained = train_on_relative_files(program, "./out/");
  ASSERT_EQ(trained.exit_code, 0) << trained.err;
  EXPECT_NE(trained.err.find("has a name of names.json"), std::string::npos) << trained.err;
  ASSERT_EQ(program.run("eval out/run").exit_code, 0);
  const Json here = read_json_file(program.run_dir() + "/eval_results.json");
  for (const char* file : {"names.json", "data/val.jsonl"})
    program.dir().write(std::string("elsewhere/") + file, "{}\n");  // of another project
  const test::ProcessResult elsewhere = program.script("cd elsewhere; $R eval ../out/run");
  ASSERT_EQ(elsewhere.exit_code, 0) << elsewhere.err;
  const Json there = read_json_file(program.run_dir() + "/eval_results.json");
  EXPECT_EQ(there["eval_set"], here["eval_set"]);
  EXPECT_NE(there["val_jsonl"], here["val_jsonl"]) << "was it written again?";
  std::filesystem::remove(program.dir().file("names.json"));
  const test::ProcessResult predicted =
      program.run("predict out/run " + test::Program::golden("images/0.png"));
  EXPECT_EQ(predicted.exit_code, 0) << "needs no names" << predicted.err;
}

TEST(EvalOfARun, TakesTheFilesOfItsStartWhereverItLies) {
  test::Program program;
  ASSERT_EQ(train_on_relative_files(program, program.dir().file("out")).exit_code, 0);
  ASSERT_EQ(program.run("eval out/run").exit_code, 0);
  const Json here = read_json_file(program.run_dir() + "/eval_results.json");
  for (const char* file : {"names.json", "data/val.jsonl"})
    program.dir().write(std::string("elsewhere/") + file, "{}\n");  // of another project
  const auto eval = [&](const std::string& arguments) {
    return program.script("cd elsewhere; $R eval " + arguments);
  };
  ASSERT_EQ(eval("../out/run").exit_code, 0) << "its output_dir is absolute";
  EXPECT_EQ(read_json_file(program.run_dir() + "/eval_results.json")["eval_set"], here["eval_set"]);
  std::filesystem::rename(program.run_dir(), program.dir().file("elsewhere/moved"));
  const test::ProcessResult moved = eval("moved");
  ASSERT_EQ(moved.exit_code, 0) << moved.err;
  EXPECT_EQ(read_json_file(program.dir().file("elsewhere/moved/eval_results.json"))["eval_set"],
            here["eval_set"]);
  std::filesystem::remove(program.dir().file("data"));
  const test::ProcessResult gone = eval("moved");
  EXPECT_EQ(gone.exit_code, 4);
  EXPECT_NE(gone.err.find(program.dir().file("data/val.jsonl")), std::string::npos) << gone.err;
  const std::string named = " --set custom.val_jsonl=" + test::Program::golden("val.jsonl");
  EXPECT_EQ(eval("moved" + named).exit_code, 0) << "as the error says";
}

TEST(Confidence, IsTheSameInRolloutsSamplesAndPredictions) {
  test::Program program;
  const std::string config = program.config(
                                 "template: {system: List the objects as JSON.}\n"
                                 "custom: {user_prompt: Find every shape.}\n") +
                             " --set model.model=" + demo_model() +
                             " --set custom.extra.rollout_matching.max_new_tokens=100";
  const test::ProcessResult evaluated = program.run("eval " + config);
  ASSERT_EQ(evaluated.exit_code, 0) << evaluated.err;
  EXPECT_EQ(evaluated.err.find("rank by the order"), std::string::npos);
  const test::ProcessResult rolled =
      program.run("rollout " + config + " --split val --out rollouts.jsonl");
  ASSERT_EQ(rolled.exit_code, 0) << rolled.err;

  const std::string base = program.run_dir() + "/eval/model";
  const Json result = read_json_file(base + ".json");
  EXPECT_EQ(result["coco_ranking"], "score");
  EXPECT_GE(result["calibration"]["bins"].size(), 1u);
  for (const Json& bin : result["calibration"]["bins"]) EXPECT_GE(bin["count"], 1);
  EXPECT_FALSE(result["precision_recall"].empty());
  const std::vector<Json> samples = scored_lines_of(read_file(base + ".samples.jsonl"));
  const std::vector<Json> rollouts =
      scored_lines_of(read_file(program.dir().file("rollouts.jsonl")));
  ASSERT_EQ(samples.size(), rollouts.size());
  std::vector<double> scores, found;
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(rollouts[i]["token_logprobs"].size(), rollouts[i]["response_token_ids"].size());
    for (const Json& logprob : rollouts[i]["token_logprobs"])
      EXPECT_TRUE(logprob.get<double>() < 1e-6 && std::isfinite(logprob.get<double>()));
    const size_t num_objects = samples[i]["predictions"].size();
    if (num_objects == 0) continue;
    ASSERT_EQ(samples[i]["scores"].size(), num_objects);
    EXPECT_EQ(samples[i]["raw_scores"], rollouts[i]["scores"]);
    for (const Json& score : samples[i]["scores"]) scores.push_back(score.get<double>());
  }
  for (const Json& one : read_json_file(base + ".predictions.json"))
    found.push_back(one["score"].get<double>());
  EXPECT_EQ(found, scores);
  EXPECT_FALSE(scores.empty());

  const test::ProcessResult reported =
      program.run("report " + program.run_dir() + " --out report.html");
  ASSERT_EQ(reported.exit_code, 0) << reported.err;
  EXPECT_NE(read_file(program.dir().file("report.html")).find("\"ranking\":\"score\""),
            std::string::npos);
}

}  // namespace rematch
