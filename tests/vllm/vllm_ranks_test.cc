// Two ranks and one real vLLM engine on the CPU, each rank a process with one thread, compared with
// `hf` in this process.
#include <ATen/Parallel.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/json.h"
#include "engine/ranks/gloo_group.h"
#include "engine/ranks/store.h"
#include "support/capture.h"
#include "support/paths.h"
#include "vllm/live_vllm.h"

namespace rematch {
namespace {

constexpr int kRanks = 2;
constexpr int kNumPrompts = 5;
constexpr int kNewTokens = 40;
// the ranks' only, with RANK and MASTER_PORT
constexpr const char* kDirectory = "REMATCH_TEST_RANKS";

test::Questions all_questions() {
  return test::questions(test::source_path("tests/shapes/model"), kNumPrompts);
}

using Answers = std::vector<std::vector<int>>;

Answers ids_of(RolloutEngine& engine, const std::vector<Prompt>& prompts,
               const std::function<void(int)>& on_progress = {}) {
  Answers ids;
  for (const Rollout& rollout : engine.generate(prompts, on_progress))
    ids.push_back(rollout.response_token_ids);
  return ids;
}

/// Rank 0 brings the first two prompts and then no more; rank 1 none, and then the others.
Answers answers_in_a_turn(RolloutEngine& engine, const std::vector<Prompt>& prompts, int rank) {
  Answers ids;
  engine.take_turn([&] {
    ids = ids_of(engine, rank == 0 ? std::vector<Prompt>(prompts.begin(), prompts.begin() + 2)
                                   : std::vector<Prompt>());
    if (rank == 1) ids = ids_of(engine, std::vector<Prompt>(prompts.begin() + 2, prompts.end()));
  });
  return ids;
}

}  // namespace

/// The work of a rank; started by the test below.
TEST(VllmRanks, DISABLED_OneOfThem) {
  const std::string directory = std::getenv(kDirectory);
  const World world{.size = kRanks,
                    .rank = std::atoi(std::getenv("RANK")),
                    .local_size = kRanks,
                    .host = "127.0.0.1",
                    .port = std::atoi(std::getenv("MASTER_PORT"))};
  at::set_num_threads(1);
  const auto group = make_gloo_group(open_store(world, std::chrono::seconds(30)), world.rank,
                                     world.size, {.one_host = true});
  test::Questions asked = all_questions();
  VllmOptions& vllm = asked.parts.vllm;
  vllm.tensor_parallel_size = vllm.world_size = kRanks;
  vllm.ranks = group.get();
  vllm.store_host = world.host;
  vllm.store_port = world.port;
  vllm.store_prefix = "rematch/none/0/2/vllm/0";
  vllm.log_path = fmt::format("{}/vllm-{}.log", directory, world.rank);
  const auto engine = make_engine("vllm", asked.parts, asked.options(kNewTokens));
  const Answers ids = answers_in_a_turn(*engine, asked.prompts, world.rank);

  bool interrupted = false;
  try {
    engine->take_turn([&] {
      if (world.rank == 1) set_interrupt_requested(true);  // one rank's interrupt is one of both
      ids_of(*engine, asked.prompts);
    });
  } catch (const Interrupted&) {
    interrupted = true;
  }
  set_interrupt_requested(false);
  EXPECT_TRUE(interrupted);
  EXPECT_EQ(answers_in_a_turn(*engine, asked.prompts, world.rank), ids)
      << "and the engine is as good as before";
  write_file_atomic(fmt::format("{}/{}.json", directory, world.rank), Json(ids).dump());
  group->barrier();
}

TEST(VllmRanks, TwoThatShareAnEngineGiveTheIdsOfHf) {
  REMATCH_NEEDS_VLLM();
  const test::TempDir directory;
  const std::string rank = fmt::format(
      "{} --gtest_also_run_disabled_tests --gtest_filter=VllmRanks.DISABLED_OneOfThem > "
      "{}/log-$RANK 2>&1",
      test::binary_path("tests/vllm_ranks_test"), directory.path());
  const test::ProcessResult result = test::run_command(
      fmt::format("export OMP_NUM_THREADS=1 {}={} MASTER_PORT=$((20000 + {} % 10000)); (export "
                  "RANK=1; {}) & export RANK=0; {}; code=$?; wait "
                  "$! && [ $code = 0 ] || {{ cat {}/log-*; exit 1; }}",
                  kDirectory, directory.path(), ::getpid(), rank, rank, directory.path()));
  ASSERT_EQ(result.exit_code, 0) << result.out << result.err;
  const test::Questions asked = all_questions();
  Answers found;
  for (const char* file : {"/0.json", "/1.json"}) {
    for (const Json& ids : read_json_file(directory.path() + file))
      found.push_back(ids.get<std::vector<int>>());
  }
  const Answers expected =
      asked.answers(*make_engine("hf", asked.parts, asked.options(kNewTokens)));
  ASSERT_EQ(found.size(), expected.size());
  const test::Differences differences = test::compare(asked, expected, found);
  EXPECT_EQ(differences.unexplained, 0);
  EXPECT_LE(differences.near_ties, 1);
}

}  // namespace rematch
