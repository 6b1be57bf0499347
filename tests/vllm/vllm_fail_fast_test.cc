// The program itself where vLLM cannot be used: exit 4 before data are read, each time with the way
// out.
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace rematch {
namespace {

// Data that are not there show what comes first.
void expect_refusal(const std::string& vllm, const std::string& said) {
  test::Program program;
  const std::string config = program.config(
      "custom: {train_jsonl: /nowhere.jsonl, val_jsonl: /nowhere.jsonl, extra: {rollout_matching: "
      "{rollout_backend: vllm, vllm: {" +
      vllm + "}}}}\n");
  for (const char* command : {"train ", "eval ", "rollout "}) {
    const test::ProcessResult result = program.run(command + config + " --device cpu");
    EXPECT_EQ(result.exit_code, 4) << command << result.err;
    EXPECT_NE(result.err.find(said), std::string::npos) << command << result.err;
    EXPECT_NE(result.err.find("rollout_backend: hf"), std::string::npos) << command << result.err;
    EXPECT_EQ(result.err.find("nowhere.jsonl"), std::string::npos)
        << "before data are read: " << result.err;
  }
}

}  // namespace

// spec: vllm-10
TEST(VllmFailFast, WithoutAnInterpreter) {
  expect_refusal("tensor_parallel_size: 1, python: /nowhere/bin/python",
                 "there is no Python interpreter for vLLM");
}

// spec: vllm-10
TEST(VllmFailFast, WithTensorParallelismThatThisMachineCannotHave) {
  expect_refusal("tensor_parallel_size: 4", "set vllm.tensor_parallel_size: 1");
  expect_refusal("", "world_size 1 is not a multiple of tensor_parallel_size 4 (the default is 4)");
}

TEST(VllmFailFast, WithLessMemoryThanTheEngineNeeds) {
  expect_refusal("tensor_parallel_size: 1, gpu_memory_utilization: 1.0e-6",
                 "memory is insufficient");
}

TEST(VllmFailFast, TheDoctorSpeaksOfWhatAConfigurationUses) {
  test::Program program;
  const std::string python = "vllm: {python: /nowhere/bin/python}";
  const std::string config = program.config(
      "custom: {extra: {rollout_matching: {rollout_backend: native, " + python + "}}}\n");
  const test::ProcessResult result = program.run("doctor " + config + " --device cpu");
  EXPECT_EQ(result.exit_code, 0) << result.out;
  EXPECT_NE(result.out.find("native  ready"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("vllm    "), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("error:"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("tensor_parallel_size"), std::string::npos) << result.out;
}

TEST(VllmFailFast, TheDoctorSaysWhatIsMissing) {
  test::Program program;
  const std::string config = program.config(
      "custom: {extra: {rollout_matching: {rollout_backend: vllm, vllm: {tensor_parallel_size: 1, "
      "python: /nowhere/bin/python}}}}\n");
  const test::ProcessResult result = program.run("doctor " + config + " --device cpu");
  EXPECT_EQ(result.exit_code, 4) << "the chosen backend cannot run";
  EXPECT_NE(result.out.find("vllm    cannot run here"), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("scripts/setup-vllm"), std::string::npos) << result.out;
  EXPECT_EQ(result.out.find("hf      "), std::string::npos) << result.out;
  EXPECT_NE(result.out.find("ranks   exchange gradients over Gloo"), std::string::npos);
  EXPECT_EQ(program.run("doctor --device nonsense").exit_code, 2);
}

}  // namespace rematch
