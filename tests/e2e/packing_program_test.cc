// Packing as users see it: its keys, its log, its messages.
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
using testing::Not;

const std::string kPacking =
    "training: {packing: true, max_steps: 3, per_device_train_batch_size: 4, "
    "packing_min_fill_ratio: 0.9}\n";

std::vector<Json> log_of(const test::Program& program) {
  std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
  std::vector<Json> logged;
  std::string line;
  while (std::getline(lines, line)) logged.push_back(parse_json(line, "logging.jsonl"));
  return logged;
}

test::ProcessResult check(const test::Program& program, const std::string& lines) {
  return program.run("check " + program.config(lines));
}

}  // namespace

// spec: pack-02 pack-08 select-16 select-17 select-03
TEST(PackingProgram, IsDrivenByTheYamlAloneAndItsExistingKeys) {
  test::Program program;
  const test::ProcessResult help = program.run("train --help");
  EXPECT_THAT(help.out + help.err, Not(HasSubstr("pack"))) << "no command-line hyper-parameter";
  const test::ProcessResult result = program.run("train " + program.config(kPacking));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::vector<Json> logged = log_of(program);
  ASSERT_EQ(logged.size(), 3u);
  for (const Json& step : logged) {
    for (const char* name : {"packing/post_rollout_fill", "packing/post_rollout_selected_total_len",
                             "packing/post_rollout_segments", "packing/post_rollout_buffer",
                             "time/post_rollout_pack_s"}) {
      EXPECT_TRUE(step.contains(name)) << name;
    }
    EXPECT_LE(step["packing/post_rollout_selected_total_len"].get<double>(), 2 * 1024)
        << "two rows of at most global_max_length";
  }
  EXPECT_THAT(result.err, HasSubstr("packing: 6 rows of up to 1024 tokens"))
      << "the line at the end of the run";
  EXPECT_THAT(result.err, HasSubstr("target 0.9 (packing_min_fill_ratio)"))
      << "the ratio is a threshold for a warning, not for training";
}

// spec: pack-03 pack-14
TEST(PackingProgram, RolloutsAreThoseOfARunWithoutPacking) {
  const auto rollouts = [](const std::string& packing) {
    test::Program program;
    const std::string config = program.config(
        "training: {packing: " + packing +
        ", max_steps: 1, per_device_train_batch_size: 4}\ncustom: {extra: {rollout_matching: {"
        "temperature: 0.8, monitor_dump: {enabled: true, dump_first_step: true, max_samples: "
        "8}}}}\n");
    for (const std::string& command :
         {"train " + config, "rollout " + config + " --split train --out rollouts.jsonl"}) {
      const test::ProcessResult result = program.run(command);
      EXPECT_EQ(result.exit_code, 0) << result.err;
    }
    // the answers of the training
    std::vector<std::string> found{read_file(program.run_dir() + "/completions/step_000001.jsonl")};
    std::istringstream lines(read_file(program.dir().file("rollouts.jsonl")));
    for (std::string line; std::getline(lines, line);) {
      const Json rollout = parse_json(line, "rollouts.jsonl");
      found.push_back(rollout.at("prompt_token_ids").dump() +
                      rollout.at("response_token_ids").dump());
    }
    return found;
  };
  const std::vector<std::string> packed = rollouts("true");
  EXPECT_EQ(packed.size(), 9u);
  EXPECT_EQ(packed, rollouts("false"));
}

TEST(PackingProgram, AllBadValuesAreReportedBeforeAModelIsLoaded) {
  test::Program program;
  const test::ProcessResult result =
      check(program,
            "model: {model: /nowhere/at/all}\n"
            "training: {packing: true, packing_drop_last: false, packing_min_fill_ratio: 1.5, "
            "packing_buffer: 0}\n"
            "custom: {extra: {rollout_matching: {packing_selector: best}}}\n");
  EXPECT_EQ(result.exit_code, 2);
  for (const char* part :
       {"packing_drop_last", "packing_min_fill_ratio", "packing_buffer", "packing_selector",
        "binpacking, optimal, fifo", "choose one of these, or set `training.packing: false`"}) {
    EXPECT_THAT(result.err, HasSubstr(part));
  }
  const test::ProcessResult no_cap =
      check(program, "global_max_length: null\ntraining: {packing: true}\n");
  EXPECT_EQ(no_cap.exit_code, 2);
  EXPECT_THAT(no_cap.err, HasSubstr("`training.packing: true` needs `global_max_length`"));
  const test::ProcessResult small = check(
      program, "training: {packing: true, packing_buffer: 3, per_device_train_batch_size: 4}\n");
  EXPECT_EQ(small.exit_code, 2);
  EXPECT_THAT(small.err, HasSubstr("`training.packing_buffer` is smaller than a micro-batch"));
}

// spec: pack-10 pack-16 select-13 select-21
TEST(PackingProgram, AFullBufferOrAnOversizeSegmentStopsTheRun) {
  test::Program program;
  const test::ProcessResult overflow = program.run(
      "train " +
      program.config(
          "global_max_length: 900\ntraining: {packing: true, packing_buffer: 8, "
          "per_device_train_batch_size: 8, gradient_accumulation_steps: 1, max_steps: 20}\n"));
  EXPECT_EQ(overflow.exit_code, 2) << overflow.err;
  EXPECT_THAT(overflow.err, HasSubstr("packing_buffer 8"));
  // Holds every prompt and its true answer, but not the model's start of an answer and the rest.
  const test::ProcessResult oversize =
      program.run("train " + program.config("global_max_length: 803\n"
                                            "training: {packing: true, run_name: oversize}\n"));
  EXPECT_EQ(oversize.exit_code, 3) << oversize.err;
  for (const char* part : {"a segment is longer than", "encoded_len 804 (prompt 690", "cap 803",
                           "raise `global_max_length`", "`training.packing: false`"})
    EXPECT_THAT(oversize.err, HasSubstr(part));
}

TEST(PackingProgram, EachScopeAndSelectorRepeatsToTheBit) {
  for (const char* how :
       {"packing_selector: binpacking",
        "packing_selector: optimal, post_rollout_pack_scope: window", "packing_selector: fifo"}) {
    const std::string lines = kPacking + "custom: {extra: {rollout_matching: {" + how + "}}}\n";
    std::string weights[2];
    for (std::string& bytes : weights) {
      test::Program program;
      const test::ProcessResult result = program.run("train " + program.config(lines));
      ASSERT_EQ(result.exit_code, 0) << how << "\n" << result.err;
      bytes = read_file(program.run_dir() + "/checkpoint-3/model.safetensors");
    }
    EXPECT_EQ(weights[0], weights[1]) << how;
  }
}

}  // namespace rematch
