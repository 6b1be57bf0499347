// `rematch` itself on two ranks that run one engine of the real vLLM together.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "e2e/program.h"
#include "vllm/live_vllm.h"

namespace rematch {
namespace {

using testing::HasSubstr;

constexpr int kSteps = 6;

/// Ranks times micro-batches is the same window.
std::string configuration(const test::Program& program, int num_ranks) {
  return program.config(
      fmt::format("model: {{model: {}}}\n"
                  "training: {{max_steps: {}, per_device_train_batch_size: 1, "
                  "gradient_accumulation_steps: {}, save_strategy: steps, save_steps: 2}}\n"
                  "custom: {{extra: {{rollout_matching: {{rollout_backend: vllm, max_new_tokens: "
                  "24, vllm: {{tensor_parallel_size: {}, "
                  "gpu_memory_utilization: 0.2, max_num_seqs: 8}}}}}}}}\n",
                  test::source_path("tests/shapes/model"), kSteps, 2 / num_ranks, num_ranks));
}

/// A training in the background, then `disturbance` with its process in $pid.
/// @param options  of torchrun, which starts several ranks
/// @param settings  more options of the program
test::ProcessResult train(const test::Program& program, int num_ranks,
                          const std::string& options = "", const std::string& disturbance = "",
                          const std::string& settings = "") {
  const std::string start =
      num_ranks > 1 ? fmt::format("{} --no-python --nproc-per-node {} {} ",
                                  test::source_path(".venv/bin/torchrun"), num_ranks, options)
                    : "";
  return test::run_command(
      fmt::format("cd {} && export OMP_NUM_THREADS=1 && {{ {}{} train {} --device cpu --set "
                  "training.resume_from_checkpoint=latest {} & pid=$!; {} wait $pid; }}",
                  program.dir().path(), start, test::binary_path("bin/rematch"),
                  configuration(program, num_ranks), settings, disturbance));
}

std::string weights_of(const test::Program& program, int step) {
  return read_file(fmt::format("{}/checkpoint-{}/model.safetensors", program.run_dir(), step));
}

/// Waits for the second step's checkpoint and sends the last rank a signal.
std::string signal_to_last_rank(const char* signal) {
  return fmt::format(
      "for i in $(seq 3000); do [ -d out/run/checkpoint-2 ] && break; sleep 0.1; done; kill -{} "
      "$(pgrep -P $pid | tail -1);",
      signal);
}

}  // namespace

TEST(VllmGroups, TwoRanksTrainAsOneProcessAlsoWhenOneIsKilledAndTheyStartAgain) {
  REMATCH_NEEDS_VLLM();
  test::Program one, two, killed;
  test::ProcessResult result = train(one, 1);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  result = train(two, 2);
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(two.log_without_times(), one.log_without_times());
  EXPECT_TRUE(weights_of(two, kSteps) == weights_of(one, kSteps)) << "other weights";
  result = train(killed, 2, "--max-restarts 1", signal_to_last_rank("KILL"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("rank 1"));
  EXPECT_THAT(result.err, HasSubstr("failed (exitcode: -9) local_rank: 1"));
  EXPECT_TRUE(weights_of(killed, kSteps) == weights_of(one, kSteps))
      << "other weights after the restart";
}

TEST(VllmGroups, RanksThatShareFrozenWeightsTrainWithTheBitsOfWholeOnes) {
  REMATCH_NEEDS_VLLM();
  const auto run = [](int zero_stage, int ranks_an_engine) {
    const test::Program program;
    const test::ProcessResult result =
        train(program, 2, "", "",
              fmt::format("--set tuner.train_type=lora --set training.zero_stage={} --set "
                          "custom.extra.rollout_matching.vllm.tensor_parallel_size={}",
                          zero_stage, ranks_an_engine));
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return std::pair(read_file(program.run_dir() +
                               fmt::format("/checkpoint-{}/adapter_model.safetensors", kSteps)),
                     program.log_without_times());
  };
  const auto whole = run(0, 2);
  EXPECT_EQ(run(3, 2), whole) << "an engine of both ranks";
  EXPECT_EQ(run(3, 1), whole) << "an engine for each";
}

TEST(VllmGroups, AnInterruptOfOneRankEndsAllWithTheirStateSaved) {
  REMATCH_NEEDS_VLLM();
  test::Program program;
  const test::ProcessResult result = train(program, 2, "", signal_to_last_rank("INT"));
  EXPECT_THAT(result.err, testing::ContainsRegex("exitcode +: 130 "));
  EXPECT_FALSE(std::filesystem::exists(program.run_dir() + fmt::format("/checkpoint-{}", kSteps)))
      << "it was interrupted";
}

}  // namespace rematch
