// Trainings with backend vllm, with a toy plug-in instead of vLLM.
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"
#include "engine/rollout/vllm/vllm_engine.h"
#include "program/assembly/run.h"
#include "program/config/config.h"
#include "support/capture.h"
#include "vllm/toy_plugin.h"

namespace rematch {
namespace {

/// The plug-in of the engine made last, and how to make the next one.
struct Colocated {
  std::unique_ptr<test::ToyPlugin> plugin;
  size_t drift_at = SIZE_MAX;
};
Colocated& colocated() {
  static Colocated instance;
  return instance;
}

}  // namespace

// The two functions of the backend, found before the library's own.
void check_vllm_available(const VllmOptions&) {}
std::unique_ptr<RolloutEngine> make_vllm_engine(const EngineParts& parts,
                                                const GenerateOptions& options) {
  const PatchOptions patches = PatchOptions::from_model_dir(parts.vllm.model_dir);
  colocated().plugin = std::make_unique<test::ToyPlugin>(parts, options, patches);
  colocated().plugin->drift_at = colocated().drift_at;
  return std::make_unique<VllmEngine>(*colocated().plugin, parts, options, patches);
}

namespace {

/// A training in this process.
/// @param rollout_matching  keys of custom.extra.rollout_matching
struct Training {
  explicit Training(const std::string& rollout_matching, size_t drift_at = SIZE_MAX) {
    colocated() = {.plugin = nullptr, .drift_at = drift_at};
    const std::string config =
        program.config("training: {output_dir: " + program.dir().file("out") +
                       "}\ncustom: {extra: {rollout_matching: {" + rollout_matching + "}}}\n");
    result = load_config(config, {});
  }
  void run() {
    Terminal terminal(out, err, {});
    run_training(result, {.device = "cpu", .terminal = terminal});
  }
  std::vector<Json> log() const {
    std::istringstream text(read_file(program.run_dir() + "/logging.jsonl"));
    std::vector<Json> steps;
    for (std::string line; std::getline(text, line);)
      steps.push_back(parse_json(line, "logging.jsonl"));
    return steps;
  }

  test::Program program;
  ConfigResult result;
  std::ostringstream out, err;
};

const std::string kVllm = "rollout_backend: vllm, vllm: {tensor_parallel_size: 1}";

}  // namespace

// spec: vllm-01 vllm-09
TEST(VllmTraining, LogsTheSameNumbersAsTrainingWithHf) {
  Training with_hf("rollout_backend: hf"), with_vllm(kVllm);
  with_hf.run();
  with_vllm.run();
  const std::vector<Json> expected = with_hf.log(), found = with_vllm.log();
  ASSERT_EQ(found.size(), expected.size());
  ASSERT_GE(found.size(), 2u);
  for (size_t i = 0; i < found.size(); ++i) {
    for (const auto& member : expected[i].items()) {
      const std::string& key = member.key();
      if (key.rfind("time/", 0) == 0 || key.find("_per_s") != std::string::npos ||
          key.find("runtime") != std::string::npos)
        continue;
      EXPECT_EQ(found[i][key], member.value()) << "step " << i + 1 << ": " << key;
    }
  }
  EXPECT_EQ(colocated().plugin->num_requests, 8) << "two windows of four samples";
  EXPECT_EQ(colocated().plugin->num_syncs, 3)
      << "right after the start, then once for each step's E-step";
}

// spec: vllm-07 vllm-09
TEST(VllmTraining, AChangedPromptStopsTheRunWithItsStateSaved) {
  Training training(kVllm, /*drift_at=*/5);
  const UserError error = test::catch_user_error([&] { training.run(); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems().front().what.find("position 5"), std::string::npos) << error.what();
  EXPECT_NE(error.problems().front().where.find("train.jsonl"), std::string::npos) << error.what();
  EXPECT_TRUE(std::filesystem::exists(training.program.run_dir() + "/checkpoint-0"))
      << training.err.str();
}

// spec: vllm-05
TEST(VllmTraining, IsConfiguredFromItsMapping) {
  Training training(
      "rollout_backend: vllm, vllm: {tensor_parallel_size: 1, gpu_memory_utilization: 0.2, "
      "max_model_len: 900, max_num_seqs: 3, "
      "enable_prefix_caching: false, max_num_batched_tokens: 1024}");
  training.run();
  const Json arguments = parse_json(colocated().plugin->description, "description")["engine_args"];
  EXPECT_EQ(arguments["gpu_memory_utilization"], 0.2);
  EXPECT_EQ(arguments["max_model_len"], 900);
  EXPECT_EQ(arguments["max_num_seqs"], 3);
  EXPECT_EQ(arguments["enable_prefix_caching"], false);
  EXPECT_EQ(arguments["max_num_batched_tokens"], 1024);
  EXPECT_EQ(arguments["tensor_parallel_size"], 1);
  EXPECT_EQ(arguments["limit_mm_per_prompt"], (Json{{"image", 1}, {"video", 0}}));
  EXPECT_FALSE(arguments.contains("python")) << "ours, not vLLM's";
}

// spec: vllm-10
TEST(VllmTraining, ATooSmallModelLengthFailsBeforeTheEngineStarts) {
  Training training("rollout_backend: vllm, vllm: {tensor_parallel_size: 1, max_model_len: 100}");
  const UserError error = test::catch_user_error([&] { training.run(); });
  EXPECT_NE(error.problems().front().error.find("max_model_len"), std::string::npos)
      << error.what();
  EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
  EXPECT_EQ(colocated().plugin, nullptr);
}

}  // namespace rematch
