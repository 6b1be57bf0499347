// The rollout buffer in whole runs.
#include <gtest/gtest.h>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

const std::string kBuffer =
    "custom: {extra: {rollout_matching: {rollout_buffer: {enabled: true, m_steps: 2}}}}\n";

std::string weights_after(const std::string& lines, int steps) {
  test::Program program;
  const test::ProcessResult result = program.run("train " + program.config(lines));
  EXPECT_EQ(result.exit_code, 0) << result.err;
  return read_file(program.run_dir() + "/checkpoint-" + std::to_string(steps) +
                   "/model.safetensors");
}

}  // namespace

// spec: buffer-03
TEST(BufferProgram, StageOneIsUntouched) {
  const std::string stage_1 = "training: {max_steps: 3}\n";
  const std::string sft =
      "custom: {trainer_variant: sft, extra: {rollout_matching: {rollout_buffer: {enabled: ";
  EXPECT_EQ(weights_after(stage_1 + sft + "true, m_steps: 2}}}}\n", 3),
            weights_after(stage_1 + sft + "false}}}}\n", 3));
}

// spec: buffer-06 buffer-15
TEST(BufferProgram, EvaluationNeverTouchesTheBuffer) {
  const std::string without = weights_after("training: {max_steps: 4}\n" + kBuffer, 4);
  const std::string with = weights_after(
      "training: {max_steps: 4, eval_strategy: steps, eval_steps: 1, save_strategy: steps, "
      "save_steps: 1}\n" +
          kBuffer,
      4);
  EXPECT_EQ(without, with) << "evaluations and saves in the middle of a window change nothing";
}

}  // namespace rematch
