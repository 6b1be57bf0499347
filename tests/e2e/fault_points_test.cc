// Every file operation of a run may fail once, or from some moment on. Whatever fails, the run either goes on or ends with an error, and
// the next start continues to the same bits. REMATCH_FAULT_POINTS sets how many operations of each kind are tried (scripts/check-faults).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

struct Fault {
  std::string call;  ///< write, fsync, rename or open
  std::string mode;  ///< an error, or "short"
  bool stays = false;
};

const std::vector<Fault> kFaults = {{"write", "ENOSPC", true}, {"write", "EIO", false}, {"write", "short", false},
                                    {"write", "EINTR", false}, {"fsync", "EIO", false}, {"rename", "EIO", false},
                                    {"open", "EDQUOT", false}, {"open", "ENOSPC", true}};
constexpr int kSteps = 4;

std::string config_of(const test::Program& program) {
  return program.config(fmt::format(
      "training: {{max_steps: {}, save_strategy: steps, save_steps: 1, save_total_limit: 2, resume_from_checkpoint: latest, report_to: "
      "tensorboard}}\n"
      "custom: {{extra: {{rollout_matching: {{max_new_tokens: 4}}}}}}\n",
      kSteps));
}

/// Trains with the `at`-th operation failing. @param at  0: none; the number of such operations goes to the file `count`
test::ProcessResult train_with(const test::Program& program, const Fault& fault, int64_t at) {
  const std::string dir = program.dir().path();
  return test::run_command(fmt::format(
      "cd {0} && LD_PRELOAD={1} FAULT_UNDER={0}/out FAULT_CALL={2} FAULT_MODE={3} FAULT_STAYS={4} FAULT_AT={5} FAULT_COUNT={0}/count "
      "{6} train {7}",
      dir, test::binary_path("tests/librematch_fault_shim.so"), fault.call, fault.mode, fault.stays ? 1 : 0, at,
      test::binary_path("bin/rematch"), config_of(program)));
}

std::string weights_of(const test::Program& program) {
  return read_file(fmt::format("{}/checkpoint-{}/model.safetensors", program.run_dir(), kSteps));
}

/// The steps of the log, e.g. "1 2 3 4".
std::string logged_steps(const test::Program& program) {
  std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
  std::string steps, line;
  while (std::getline(lines, line)) steps += (steps.empty() ? "" : " ") + parse_json(line, "logging.jsonl")["step"].dump();
  return steps;
}

int64_t points_of_each_kind() {
  const char* asked = std::getenv("REMATCH_FAULT_POINTS");
  return asked == nullptr ? 2 : std::atoll(asked);
}

}  // namespace

TEST(FaultPoints, WhateverFailsTheNextStartContinuesToTheSameBits) {
  test::Program undisturbed;
  ASSERT_EQ(undisturbed.run("train " + config_of(undisturbed)).exit_code, 0);
  const std::string weights = weights_of(undisturbed);
  int64_t num_points = 0, num_ended = 0;
  for (const Fault& fault : kFaults) {
    test::Program counted;
    ASSERT_EQ(train_with(counted, fault, 0).exit_code, 0);
    const int64_t num_calls = std::stoll(read_file(counted.dir().file("count")));
    ASSERT_GT(num_calls, 0) << fault.call;
    const int64_t num_tried = std::min(points_of_each_kind(), num_calls);
    for (int64_t i = 0; i < num_tried; ++i) {
      const int64_t at = 1 + (num_tried == 1 ? num_calls / 2 : i * (num_calls - 1) / (num_tried - 1));
      const std::string point = fmt::format("{} {} of {} {}{}", fault.call, at, num_calls, fault.mode, fault.stays ? " for good" : "");
      test::Program program;
      const test::ProcessResult failed = train_with(program, fault, at);
      EXPECT_TRUE(failed.exit_code == 0 || failed.exit_code == 4) << point << ": exit " << failed.exit_code << "\n" << failed.err;
      EXPECT_TRUE(failed.exit_code == 0 || failed.err.find("error: ") != std::string::npos) << point << "\n" << failed.err;
      const test::ProcessResult next = program.run("train " + config_of(program));
      ASSERT_EQ(next.exit_code, 0) << point << "\n" << failed.err << next.err;
      EXPECT_TRUE(weights_of(program) == weights) << point;
      EXPECT_EQ(logged_steps(program), "1 2 3 4") << point;
      ++num_points;
      num_ended += failed.exit_code == 4;
    }
  }
  fmt::print("{} fault points: {} ended with an error, {} went on\n", num_points, num_ended, num_points - num_ended);
}

}  // namespace rematch
