// `rematch` itself with `rollout_backend: vllm`, compared with `hf` on the same scenes.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "vllm/live_vllm.h"

namespace rematch {
namespace {

constexpr int kSteps = 3;

// The demonstration's checkpoint on the golden scenes. @param more  keys of
// custom.extra.rollout_matching, each followed by a comma
std::string lines(const std::string& backend, const std::string& more = "",
                  int max_steps = kSteps) {
  return fmt::format(
      "global_max_length: 1024\nmodel: {{model: {}}}\ntraining: {{max_steps: {}}}\n"
      "custom: {{extra: {{rollout_matching: {{rollout_backend: {}, {}vllm: {{tensor_parallel_size: "
      "1, gpu_memory_utilization: "
      "0.1}}}}}}}}\n",
      test::source_path("tests/shapes/model"), max_steps, backend, more);
}

std::vector<Json> logged(const test::Program& program) {
  std::istringstream text(read_file(program.run_dir() + "/logging.jsonl"));
  std::vector<Json> steps;
  for (std::string line; std::getline(text, line);)
    steps.push_back(parse_json(line, "logging.jsonl"));
  return steps;
}

/// Expects equal log lines. One near tie sets the two runs apart for good, so lines count up to the
/// first with other rollouts, which is not the first of all.
void expect_equal_logs(const test::Program& with_hf, const test::Program& with_vllm) {
  const std::vector<Json> expected = logged(with_hf), found = logged(with_vllm);
  ASSERT_EQ(expected.size(), found.size());
  ASSERT_GE(found.size(), static_cast<size_t>(kSteps));
  bool equal_so_far = true;
  for (size_t i = 0; i < found.size() && equal_so_far; ++i) {
    equal_so_far = found[i].value("rollout/gen_new_tokens_total", 0.0) ==
                   expected[i].value("rollout/gen_new_tokens_total", 0.0);
    EXPECT_TRUE(equal_so_far || i > 0) << "the first rollouts are those of the same weights";
    for (const auto& member : found[i].items()) {
      const std::string& key = member.key();
      if (!equal_so_far || key.rfind("time/", 0) == 0 || key.find("_per_s") != std::string::npos ||
          key.find("runtime") != std::string::npos)
        continue;
      EXPECT_EQ(member.value(), expected[i].value(key, Json())) << "step " << i + 1 << ": " << key;
    }
  }
}

/// Samples of `eval`, with their predictions and scores.
std::vector<Json> eval_samples(const test::Program& program) {
  std::vector<Json> samples;
  for (const auto& entry : std::filesystem::directory_iterator(program.run_dir() + "/eval")) {
    const std::string path = entry.path().string();
    if (path.find(".samples.jsonl") == std::string::npos) continue;
    std::istringstream text(read_file(path));
    for (std::string line; std::getline(text, line);) samples.push_back(parse_json(line, path));
  }
  return samples;
}

}  // namespace

TEST(VllmProgram, TrainsAsWithHf) {
  REMATCH_NEEDS_VLLM();
  test::Program with_hf, with_vllm;
  test::ProcessResult result = with_hf.run("train " + with_hf.config(lines("hf")));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = with_vllm.run("train " + with_vllm.config(lines("vllm")));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  expect_equal_logs(with_hf, with_vllm);
  EXPECT_TRUE(std::filesystem::exists(with_vllm.run_dir() + "/vllm.log"));
  EXPECT_EQ(result.out.find("vllm."), std::string::npos)
      << "the terminal is the program's: " << result.out;
  EXPECT_EQ(result.err.find("WARNING"), std::string::npos) << result.err;
}

// A checkpoint that stage 1 has just taught to answer in digits, by `rewrite` with either backend.
TEST(VllmProgram, TrainsAndScoresAnswersInDigitsAsWithHf) {
  REMATCH_NEEDS_VLLM();
  test::Program stage1, with_hf, with_vllm;
  const auto boxes = [](const test::Program& program) {
    EXPECT_EQ(
        program.run("data boxes " + test::Program::golden("train.jsonl") + " --out boxes.jsonl")
            .exit_code,
        0);
  };
  const std::string digits =
      " --set custom.answer_format=qwen_json --set custom.train_jsonl=boxes.jsonl --set "
      "custom.val_jsonl=boxes.jsonl";
  boxes(stage1);
  test::ProcessResult result =
      stage1.run("train " + stage1.config(lines("hf", "", 160)) + digits +
                 " --set custom.trainer_variant=sft --set training.learning_rate=2e-3");
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const auto command = [&](const char* name, const char* backend) {
    return fmt::format(
        "{} run.yaml --set custom.extra.rollout_matching.rollout_backend={} --set "
        "model.model={}/checkpoint-160{}",
        name, backend, stage1.run_dir(), digits);
  };
  for (const auto& [program, backend] : {std::pair{&with_hf, "hf"}, {&with_vllm, "vllm"}}) {
    boxes(*program);
    program->config(lines("hf", "max_new_tokens: 120, target_policy: rewrite, "));
    for (const char* name : {"eval", "train"}) {
      result = program->run(command(name, backend));
      ASSERT_EQ(result.exit_code, 0) << result.err;
    }
  }
  expect_equal_logs(with_hf, with_vllm);
  const std::vector<Json> expected = eval_samples(with_hf), found = eval_samples(with_vllm);
  ASSERT_EQ(found.size(), expected.size());
  size_t num_objects = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i]["predictions"], expected[i]["predictions"]) << i;
    ASSERT_EQ(found[i].contains("scores"), expected[i].contains("scores")) << i;
    if (!found[i].contains("scores")) continue;
    ASSERT_EQ(found[i]["scores"].size(), expected[i]["scores"].size()) << i;
    for (size_t k = 0; k < found[i]["scores"].size(); ++k, ++num_objects)
      EXPECT_NEAR(found[i]["scores"][k].get<double>(), expected[i]["scores"][k].get<double>(),
                  1e-4);
  }
  EXPECT_GT(num_objects, 0U) << "stage 1 taught no object at all";
}

TEST(VllmProgram, EvaluatesToTheSameScores) {
  REMATCH_NEEDS_VLLM();
  test::Program program;
  const auto scores = [&](const std::string& backend) {
    const test::ProcessResult result =
        program.run("eval " + program.config(lines(backend, "max_new_tokens: 160, ")));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return read_json_file(program.run_dir() + "/eval_results.json");
  };
  const Json expected = scores("hf"), found = scores("vllm");
  for (const char* name : {"eval_rollout_f1", "eval_rollout_precision", "eval_rollout_pred_objects",
                           "eval_rollout_matched_maskiou_mean"}) {
    EXPECT_EQ(found[name], expected[name]) << name;
  }
}

TEST(VllmProgram, AnInterruptWithinGenerationSavesAndExits130) {
  REMATCH_NEEDS_VLLM();
  test::Program program;
  const std::string config = program.config(lines("vllm", "max_new_tokens: 300, ", 100000));
  // As soon as a step is logged the next window generates: nearly all of the time goes there.
  const test::ProcessResult result =
      program.run(fmt::format("--version > /dev/null && {{ {} train {} & pid=$!; for i in $(seq "
                              "6000); do [ -s {}/logging.jsonl ] && break; "
                              "sleep 0.1; done; sleep 0.3; "
                              "kill -INT $pid; wait $pid; }}",
                              test::binary_path("bin/rematch"), config, program.run_dir()));
  EXPECT_EQ(result.exit_code, 130) << result.err;
  bool saved = false;
  for (const auto& entry : std::filesystem::directory_iterator(program.run_dir())) {
    saved = saved || entry.path().filename().string().rfind("checkpoint-", 0) == 0;
  }
  EXPECT_TRUE(saved) << result.err;
}

TEST(VllmProgram, TheGenerateStageAnswersAsHfDoes) {
  REMATCH_NEEDS_VLLM();
  test::Program program;
  std::string input;
  for (const int new_tokens : {8, 20}) {
    input += fmt::format(R"({{"messages":[{{"role":"user","content":[{{"type":"image"}},)"
                         R"({{"type":"text","text":"Find every shape."}}]}}],)"
                         R"("images":["{}"],"max_new_tokens":{}}})"
                         "\n",
                         test::Program::golden("images/0.png"), new_tokens);
  }
  const auto answers = [&](const std::string& backend) {
    return program.run_stage(
        fmt::format("generate --model {} --backend {} --device cpu --dtype float32",
                    test::source_path("tests/shapes/model"), backend),
        input);
  };
  const test::ProcessResult expected = answers("hf"), found = answers("vllm");
  EXPECT_EQ(found.exit_code, 0) << found.err;
  EXPECT_NE(found.out.find("response_token_ids"), std::string::npos) << found.out;
  EXPECT_EQ(found.out, expected.out);
}

TEST(VllmProgram, TheDoctorFindsIt) {
  REMATCH_NEEDS_VLLM();
  test::Program program;
  const test::ProcessResult result = program.run("doctor --device cpu");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_NE(result.out.find("vllm    ready"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("its vllm     "), std::string::npos) << result.out;
}

}  // namespace rematch
