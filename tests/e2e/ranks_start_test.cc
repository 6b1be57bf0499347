// The program as one rank of several whose others are not there: what it waits for and refuses.
#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "e2e/program.h"

namespace rematch {

using testing::HasSubstr;

TEST(Ranks, ARankThatNeverStartsIsWaitedForNoLongerThanTheTimeout) {
  test::Program program;
  const std::string config = program.config();
  for (const auto& [rank, answer] :
       {std::pair{0, "not all ranks connected in time"}, {1, "rank 0 did not answer within 4 s"}}) {
    const test::ProcessResult result = test::run_command(fmt::format(
        "cd {} && export WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 RANK={} LOCAL_RANK={} "
        "MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)); exec timeout -s KILL 25 {} "
        "train {} --set training.ddp_timeout=4",
        program.dir().path(), rank, rank, test::binary_path("bin/rematch"), config));
    EXPECT_EQ(result.exit_code, 4) << result.err;
    EXPECT_THAT(result.err, HasSubstr(answer));
  }
}

TEST(Ranks, CommandsThatAreOneProcessSaySo) {
  test::Program program;
  const std::string config = program.config(), model = test::Program::model();
  for (const std::string& command :
       {"rollout " + config + " --split val --out out.jsonl", "probe " + config,
        "predict " + model + " x.png", "merge " + model + " --out out",
        "add-coord-tokens " + model + " out"}) {
    const test::ProcessResult result = test::run_command(fmt::format(
        "cd {} && export WORLD_SIZE=2 RANK=1 MASTER_ADDR=127.0.0.1 MASTER_PORT=1; exec {} {}",
        program.dir().path(), test::binary_path("bin/rematch"), command));
    EXPECT_EQ(result.exit_code, 4) << command << result.err;
    EXPECT_THAT(result.err, HasSubstr("runs as a single process")) << command;
  }
}

TEST(Ranks, TheProgramDefinesNoSymbolOfGloo) {
  const test::ProcessResult symbols =
      test::run_command("nm -D --defined-only -C " + test::binary_path("bin/rematch") +
                        " | grep -E 'gloo::|GlooStore'");
  EXPECT_EQ(symbols.out, "");
}

}  // namespace rematch
