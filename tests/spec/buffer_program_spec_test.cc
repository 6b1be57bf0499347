// Sentences of the rollout-buffer requirement that only the whole program can show.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using testing::HasSubstr;

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

// spec: buffer-01
TEST(BufferProgramSpec, TheKeysAreThoseOfTheSeedsAndBadValuesAreTold) {
  test::Program program;
  for (const char* bad : {"m_steps: 0", "m_steps: 1.5", "m_steps: two", "m_steps: -1"}) {
    const test::ProcessResult result = program.run(
        "check " +
        program.config(
            std::string("custom: {extra: {rollout_matching: {rollout_buffer: {enabled: true, ") +
            bad + "}}}}\n"));
    EXPECT_EQ(result.exit_code, 2) << bad;
    EXPECT_THAT(result.err, HasSubstr("rollout_buffer.m_steps")) << bad;
  }
  const test::ProcessResult shown = program.run("check " + program.config());
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  std::istringstream lines(shown.out);
  std::string line;
  bool saw_enabled = false, saw_steps = false;
  while (std::getline(lines, line)) {
    saw_enabled = saw_enabled || (line.find("rollout_buffer.enabled") != std::string::npos &&
                                  line.find("false") != std::string::npos);
    saw_steps = saw_steps || (line.find("rollout_buffer.m_steps") != std::string::npos &&
                              line.find(" 1 ") != std::string::npos);
  }
  EXPECT_TRUE(saw_enabled && saw_steps) << shown.out;
}

// spec: buffer-03
TEST(BufferProgramSpec, StageOneIsUntouched) {
  const std::string stage_1 = "training: {max_steps: 3}\n";
  const std::string sft =
      "custom: {trainer_variant: sft, extra: {rollout_matching: {rollout_buffer: {enabled: ";
  EXPECT_EQ(weights_after(stage_1 + sft + "true, m_steps: 2}}}}\n", 3),
            weights_after(stage_1 + sft + "false}}}}\n", 3));
}

// spec: buffer-06 buffer-15
TEST(BufferProgramSpec, EvaluationNeverTouchesTheBuffer) {
  const std::string without = weights_after("training: {max_steps: 4}\n" + kBuffer, 4);
  const std::string with = weights_after(
      "training: {max_steps: 4, eval_strategy: steps, eval_steps: 1, save_strategy: steps, "
      "save_steps: 1}\n" +
          kBuffer,
      4);
  EXPECT_EQ(without, with) << "evaluations and saves in the middle of a window change nothing";
}

}  // namespace rematch
