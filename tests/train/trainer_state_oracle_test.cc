// trainer_state.json goes through transformers and comes back.
#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "learn/resume/trainer_state.h"
#include "state_text.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

TEST(TrainerStateOracle, TransformersReadsItAndWeReadWhatItWrites) {
  const std::string python = test::source_path(".venv/bin/python");
  if (!std::filesystem::exists(python)) GTEST_SKIP() << "no python with transformers at " << python;
  TrainerState ours;
  ours.progress.global_step = 120;
  ours.progress.epoch = 1.0 / 3.0;
  ours.progress.best_metric = 0.1 + 0.2;
  ours.progress.best_global_step = 100;
  ours.progress.best_model_checkpoint = "runs/checkpoint-100";
  // Sorted, as transformers writes them.
  ours.progress.log_history.push_back(
      {.step = 5, .values = {{"epoch", 0.1}, {"loss", 1e-7}, {"rollout/f1", 2.0}}});
  const test::TempDir dir;
  write_file_atomic(dir.file("ours.json"), to_json(ours));
  const std::string code = "from transformers import TrainerState as T\nT.load_from_json('" +
                           dir.file("ours.json") + "').save_to_json('" + dir.file("theirs.json") +
                           "')";
  const test::ProcessResult result =
      test::run_command("OMP_NUM_THREADS=1 '" + python + "' -", code);
  if (result.err.find("No module named") != std::string::npos)
    GTEST_SKIP() << "transformers is not installed (scripts/setup --oracles)";
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const TrainerState theirs =
      TrainerState::from_json(read_file(dir.file("theirs.json")), "theirs.json");
  EXPECT_EQ(theirs.progress.global_step, ours.progress.global_step);
  EXPECT_EQ(theirs.progress.epoch, ours.progress.epoch);
  EXPECT_EQ(theirs.progress.best_metric, ours.progress.best_metric);
  EXPECT_EQ(theirs.progress.best_global_step, ours.progress.best_global_step);
  EXPECT_EQ(theirs.progress.best_model_checkpoint, ours.progress.best_model_checkpoint);
  EXPECT_EQ(theirs.progress.log_history, ours.progress.log_history);
}

}  // namespace rematch
