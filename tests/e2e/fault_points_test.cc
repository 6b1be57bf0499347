// Every file operation of a run may fail once, or from some moment on, and so may every large
// allocation. Whatever fails, the run either continues or ends with an error, and the next start
// continues to the same bits. REMATCH_FAULT_POINTS sets how many operations of each kind are tried
// (scripts/check faults).
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "e2e/program.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

struct Fault {
  std::string call;  ///< of tests/support/fault_shim.c
  std::string mode;  ///< an error, or "short"
  bool stays = false;
};

const std::vector<Fault> kWriteFaults = {{"write", "ENOSPC", true}, {"write", "EIO", false},
                                         {"write", "short", false}, {"write", "EINTR", false},
                                         {"fsync", "EIO", false},   {"rename", "EIO", false},
                                         {"open", "EDQUOT", false}, {"open", "ENOSPC", true}};
const std::vector<Fault> kReadFaults = {{"read", "EIO", false},      {"read", "short", true},
                                        {"read", "EINTR", false},    {"open-read", "EMFILE", false},
                                        {"open-read", "EIO", true},  {"map", "ENOMEM", false},
                                        {"malloc", "ENOMEM", false}, {"malloc", "ENOMEM", true}};
constexpr int kSteps = 4;
// Smallest allocation that fails. oneDNN does not check its own, which are smaller.
constexpr int64_t kLeastBytes = (int64_t{1} << 18) + 1;

std::string config_of(const test::Program& program) {
  return program.config(
      fmt::format("training: {{max_steps: {}, save_strategy: steps, save_steps: 1, "
                  "save_total_limit: 2, resume_from_checkpoint: latest, report_to: "
                  "tensorboard}}\n"
                  "custom: {{extra: {{rollout_matching: {{max_new_tokens: 4}}}}}}\n",
                  kSteps));
}

/// As config_of, from files in the program's own directory, where they can fail, and with
/// evaluations.
std::string own_files(const test::Program& program) {
  fs::copy(test::Program::model(), program.dir().file("model"), fs::copy_options::recursive);
  fs::copy(test::Program::golden("images"), program.dir().file("images"));
  for (const char* name : {"train.jsonl", "val.jsonl"})
    fs::copy(test::Program::golden(name), program.dir().file(name));
  return program.config(
      fmt::format("model: {{model: model}}\n"
                  "training: {{max_steps: {}, save_strategy: steps, save_steps: 1, "
                  "resume_from_checkpoint: latest, eval_strategy: steps, "
                  "eval_steps: 2}}\n"
                  "custom: {{train_jsonl: train.jsonl, val_jsonl: val.jsonl, val_sample_limit: 2, "
                  "extra: {{rollout_matching: "
                  "{{max_new_tokens: 4}}}}}}\n",
                  kSteps));
}

/// Trains with the `at`-th operation failing below `under`.
/// @param at  0: none; the numbers of operations go to the file `count`
test::ProcessResult train_with(const test::Program& program, const std::string& config,
                               const std::string& under, const Fault& fault, int64_t at) {
  return test::run_command(fmt::format(
      "cd {0} && LD_PRELOAD={1} FAULT_UNDER={0}{2} FAULT_CALL={3} FAULT_MODE={4} FAULT_STAYS={5} "
      "FAULT_AT={6} FAULT_SIZE={7} "
      "FAULT_COUNT={0}/count {8} train {9}",
      program.dir().path(), test::binary_path("tests/librematch_fault_shim.so"), under, fault.call,
      fault.mode, fault.stays ? 1 : 0, at, kLeastBytes, test::binary_path("bin/rematch"), config));
}

/// Operations of each kind that a run counted.
std::map<std::string, int64_t> counts_of(const test::Program& program) {
  std::istringstream lines(read_file(program.dir().file("count")));
  std::map<std::string, int64_t> counts;
  std::string call;
  for (int64_t count = 0; lines >> call >> count;) counts[call] = count;
  return counts;
}

/// `num_tried` of the operations 1 … num_calls: first, last and between; the middle one alone.
std::vector<int64_t> spread(int64_t num_tried, int64_t num_calls) {
  num_tried = std::min(num_tried, num_calls);
  if (num_tried == 1) return {(num_calls + 1) / 2};
  std::vector<int64_t> points;
  for (int64_t i = 0; i < num_tried; ++i)
    points.push_back(1 + i * (num_calls - 1) / (num_tried - 1));
  return points;
}

std::string name_of(const Fault& fault, int64_t at, int64_t num_calls) {
  return fmt::format("{} {} of {} {}{}", fault.call, at, num_calls, fault.mode,
                     fault.stays ? " for good" : "");
}

/// True if a run that cannot read or allocate something continues, or reports it.
bool goes_on_or_tells(const Fault& fault, const test::ProcessResult& result) {
  const auto tells = [&](const char* text) { return result.err.find(text) != std::string::npos; };
  if (result.exit_code == 0) return true;
  if (fault.mode == "short" || fault.mode == "EINTR" || !tells("error: ")) return false;
  if (fault.call == "malloc") return result.exit_code == 4 && tells("out of memory");
  return result.exit_code == 4 || (result.exit_code == 2 && tells(".yaml")) ||
         (result.exit_code == 3 && fault.mode == "EIO" && tells("images/"));
}

std::string weights_of(const test::Program& program) {
  return read_file(fmt::format("{}/checkpoint-{}/model.safetensors", program.run_dir(), kSteps));
}

/// The steps of the log, e.g. "1 2 3 4".
std::string logged_steps(const test::Program& program) {
  std::istringstream lines(read_file(program.run_dir() + "/logging.jsonl"));
  std::string steps, line;
  while (std::getline(lines, line))
    steps += (steps.empty() ? "" : " ") + parse_json(line, "logging.jsonl")["step"].dump();
  return steps;
}

int64_t points_of_each_kind() {
  const char* asked = std::getenv("REMATCH_FAULT_POINTS");
  return asked == nullptr ? 2 : std::atoll(asked);
}

}  // namespace

TEST(FaultPoints, WhateverFailsTheNextStartContinuesToTheSameBits) {
  test::Program undisturbed;
  ASSERT_EQ(train_with(undisturbed, config_of(undisturbed), "/out", {}, 0).exit_code, 0);
  const std::string weights = weights_of(undisturbed);
  auto counts = counts_of(undisturbed);
  int64_t num_points = 0, num_ended = 0;
  for (const Fault& fault : kWriteFaults) {
    const int64_t num_calls = counts[fault.call];
    ASSERT_GT(num_calls, 0) << fault.call;
    for (const int64_t at : spread(points_of_each_kind(), num_calls)) {
      const std::string point = name_of(fault, at, num_calls);
      test::Program program;
      const test::ProcessResult failed = train_with(program, config_of(program), "/out", fault, at);
      EXPECT_TRUE(failed.exit_code == 0 || failed.exit_code == 4)
          << point << ": exit " << failed.exit_code << "\n"
          << failed.err;
      EXPECT_TRUE(failed.exit_code == 0 || failed.err.find("error: ") != std::string::npos)
          << point << "\n"
          << failed.err;
      const test::ProcessResult next = program.run("train " + config_of(program));
      ASSERT_EQ(next.exit_code, 0) << point << "\n" << failed.err << next.err;
      EXPECT_TRUE(weights_of(program) == weights) << point;
      EXPECT_EQ(logged_steps(program), "1 2 3 4") << point;
      ++num_points;
      num_ended += failed.exit_code == 4;
    }
  }
  fmt::print("{} fault points: {} ended with an error, {} went on\n", num_points, num_ended,
             num_points - num_ended);
}

// A run that resumes does everything that a run does: it reads a configuration, data, a model and a
// checkpoint, answers, steps, evaluates, saves.
TEST(FaultPoints, WhateverCannotBeReadOrAllocatedTheNextStartContinuesToTheSameBits) {
  test::Program undisturbed;
  ASSERT_EQ(undisturbed.run("train " + own_files(undisturbed)).exit_code, 0);
  const std::string weights = weights_of(undisturbed), log = undisturbed.log_without_times();
  for (const int later : {kSteps - 1, kSteps})
    fs::remove_all(fmt::format("{}/checkpoint-{}", undisturbed.run_dir(), later));
  // The run as it was after two of its steps, resumed with a fault.
  const auto resume_with = [&](const test::Program& program, const Fault& fault, int64_t at) {
    fs::copy(undisturbed.dir().path(), program.dir().path(),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing |
                 fs::copy_options::copy_symlinks);
    return train_with(program, "run.yaml", "", fault, at);
  };
  test::Program counted;
  ASSERT_EQ(resume_with(counted, {}, 0).exit_code, 0);
  auto counts = counts_of(counted);
  int64_t num_points = 0, num_ended = 0;
  for (const Fault& fault : kReadFaults) {
    const int64_t num_calls = counts[fault.call];
    ASSERT_GT(num_calls, 0) << fault.call;
    for (const int64_t at : spread(std::max<int64_t>(points_of_each_kind() / 2, 1), num_calls)) {
      const std::string point = name_of(fault, at, num_calls);
      test::Program program;
      const test::ProcessResult failed = resume_with(program, fault, at);
      EXPECT_TRUE(goes_on_or_tells(fault, failed)) << point << ": exit " << failed.exit_code << "\n"
                                                   << failed.err;
      if (failed.exit_code != 0) {
        const test::ProcessResult next = program.run("train run.yaml");
        ASSERT_EQ(next.exit_code, 0) << point << "\n" << failed.err << next.err;
      }
      EXPECT_TRUE(weights_of(program) == weights) << point;
      EXPECT_EQ(program.log_without_times(), log) << point;
      ++num_points;
      num_ended += failed.exit_code != 0;
    }
  }
  fmt::print("{} points of reading and allocating: {} ended with an error, {} went on\n",
             num_points, num_ended, num_points - num_ended);
}

}  // namespace rematch
