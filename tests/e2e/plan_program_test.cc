#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;

TEST(PlanProgram, HelpNamesEveryOption) {
  const test::ProcessResult result = test::Program().run("plan --help");
  EXPECT_EQ(result.exit_code, 0);
  for (const char* option : {"--gpu-memory", "--ranks", "--image-tokens", "--json", "--set"}) {
    EXPECT_THAT(result.out, HasSubstr(option));
  }
}

TEST(PlanProgram, CheckRefusesBeforeAnythingIsShown) {
  test::Program program;
  const test::ProcessResult result =
      program.run("check " + program.config() + " --gpu-memory 0.001");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_THAT(result.err, HasSubstr("this run cannot fit the device"));
}

TEST(PlanProgram, RejectsMemoryThatIsNoNumber) {
  test::Program program;
  for (const std::string& command :
       {"plan " + test::Program::model(), "check " + program.config()}) {
    for (const char* gib : {"nan", "-nan", "inf", "0", "24GB", ""}) {
      const test::ProcessResult result = program.run(command + " --gpu-memory '" + gib + "'");
      EXPECT_EQ(result.exit_code, 2) << gib;
      EXPECT_THAT(result.err, HasSubstr("--gpu-memory")) << gib;
    }
  }
}

TEST(PlanProgram, RejectsAnUnknownZeroStage) {
  const test::ProcessResult result =
      test::Program().run("plan " + test::Program::model() + " --set training.zero_stage=3");
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.err, HasSubstr("zero_stage"));
}

TEST(PlanProgram, CountsParametersAsTransformersDoes) {
  const std::string python = test::source_path(".venv/bin/python");
  const std::string code = R"(
import json, sys, torch
from transformers import AutoConfig, Qwen3VLForConditionalGeneration
config = AutoConfig.from_pretrained(sys.argv[1])
with torch.device("meta"): model = Qwen3VLForConditionalGeneration(config)
model.tie_weights()
print(json.dumps({"total": model.num_parameters(), "vision": model.model.visual.num_parameters()}))
)";
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "this checkout has no .venv";
  for (const char* name : {"tiny_tied", "tiny_untied"}) {
    SCOPED_TRACE(name);
    const std::string directory = test::source_path(std::string("tests/golden/model/") + name);
    const test::ProcessResult wanted =
        test::run_command("OMP_NUM_THREADS=1 " + python + " - " + directory, code);
    if (wanted.exit_code != 0) GTEST_SKIP() << "the .venv of this checkout has no transformers";
    const test::ProcessResult found = test::Program().run("plan " + directory + " --json");
    const Json counts = parse_json(found.out, "plan")["parameters"],
               theirs = parse_json(wanted.out, "transformers");
    EXPECT_EQ(counts["total"], theirs["total"]);
    EXPECT_EQ(counts["vision"], theirs["vision"]);
  }
}

}  // namespace
}  // namespace rematch
