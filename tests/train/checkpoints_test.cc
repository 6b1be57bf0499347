#include "learn/train/checkpoints.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

Checkpoints::Writer tiny_writer() {
  return [](const std::string& directory) {
    write_file_atomic(directory + "/model.safetensors", "weights");
  };
}

void no_state(const std::string&) {}

std::vector<std::string> names_in(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

TrainerState state_at(int64_t step) {
  TrainerState state;
  state.progress.global_step = step;
  return state;
}

}  // namespace

TEST(Checkpoints, KeepsTheNewestAndTheBest) {
  test::TempDir dir;
  Checkpoints checkpoints({.run_dir = dir.path(), .save_total_limit = 2}, tiny_writer());
  TrainerState state;
  for (const int64_t step : {1, 2, 3, 4, 5}) {
    state.progress.global_step = step;
    state.progress.update_best(step == 2 ? 0.9 : 0.1, true, step);
    checkpoints.save(state, no_state);
  }
  EXPECT_EQ(checkpoints.existing_steps(), (std::vector<int64_t>{2, 5}));
  EXPECT_EQ(state.progress.best_model_checkpoint, checkpoints.checkpoint_path(2));
  EXPECT_EQ(std::filesystem::read_symlink(dir.file("best")), "checkpoint-2");
  EXPECT_EQ(std::filesystem::read_symlink(dir.file("last")), "checkpoint-5");
}

TEST(Checkpoints, ALinkThatCannotBeMadeIsAWarning) {
  test::TempDir dir;
  dir.write("last", "of a user");
  std::vector<std::string> warnings;
  Checkpoints checkpoints(
      {.run_dir = dir.path(), .warn = [&](const std::string& text) { warnings.push_back(text); }},
      tiny_writer());
  TrainerState state = state_at(1);
  checkpoints.save(state, no_state);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("last is not linked to checkpoint-1"), std::string::npos);
  EXPECT_EQ(read_file(dir.file("last")), "of a user");
}

TEST(Checkpoints, AFullDiskLeavesThePreviousCheckpointIntactAndNoTrace) {
  test::TempDir dir;
  bool disk_is_full = false;
  Checkpoints checkpoints({.run_dir = dir.path(), .save_total_limit = 1},
                          [&](const std::string& directory) {
                            FileWriter writer(directory + "/model.safetensors");
                            writer.write("weights");
                            writer.finish();
                            if (disk_is_full) {
                              FileWriter full("/dev/full");
                              full.write(std::string(1 << 16, 'x'));
                              full.finish();
                            }
                          });
  TrainerState first = state_at(1);
  checkpoints.save(first, no_state);
  disk_is_full = true;
  TrainerState second = state_at(2);
  const UserError error = test::catch_user_error([&] { checkpoints.save(second, no_state); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problems()[0].what, "No space left on device");
  EXPECT_EQ(checkpoints.existing_steps(), (std::vector<int64_t>{1}));
  EXPECT_EQ(read_file(checkpoints.checkpoint_path(1) + "/model.safetensors"), "weights");
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"checkpoint-1", "last"}));
}

TEST(Checkpoints, AnUnwritableDirectoryIsAnEnvironmentError) {
  Checkpoints checkpoints({.run_dir = "/proc/nowhere"}, tiny_writer());
  TrainerState state = state_at(1);
  const UserError error = test::catch_user_error([&] { checkpoints.save(state, no_state); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
}

TEST(Checkpoints, IgnoresForeignAndIncompleteDirectories) {
  test::TempDir dir;
  dir.write("checkpoint-3/model.safetensors", "half");
  dir.write("checkpoint-x/trainer_state.json", "{}");
  Checkpoints checkpoints({.run_dir = dir.path()}, tiny_writer());
  EXPECT_TRUE(checkpoints.existing_steps().empty());
}

TEST(Checkpoints, WritesTheModelThenTheTrainerStateThenTheTrainingState) {
  test::TempDir dir;
  std::vector<std::string> order;
  const auto writer = [&order](const std::string& name) {
    return [&order, name](const std::string& directory) {
      EXPECT_EQ(std::filesystem::exists(directory + "/trainer_state.json"), name == "state");
      order.push_back(name);
      write_file_atomic(directory + "/" + name, name);
    };
  };
  TrainerState state = state_at(1);
  Checkpoints({.run_dir = dir.path()}, writer("model")).save(state, writer("state"));
  EXPECT_EQ(order, (std::vector<std::string>{"model", "state"}));
  EXPECT_TRUE(std::filesystem::exists(dir.file("checkpoint-1/state")));
  EXPECT_TRUE(std::filesystem::exists(dir.file("checkpoint-1/trainer_state.json")));
}

TEST(Checkpoints, WithoutTrainingStateItsWriterIsNotCalled) {
  test::TempDir dir;
  TrainerState state = state_at(1);
  Checkpoints({.run_dir = dir.path(), .save_only_model = true}, tiny_writer())
      .save(state, [](const std::string&) { FAIL(); });
  EXPECT_TRUE(std::filesystem::exists(dir.file("checkpoint-1/trainer_state.json")));
}

TEST(Checkpoints, AFailingStateWriterLeavesNoCheckpointAndDeletesNone) {
  test::TempDir dir;
  const auto fail = [](const std::string& directory) {
    FileWriter(directory + "/no/such/directory");
  };
  TrainerState state = state_at(1);
  Checkpoints checkpoints({.run_dir = dir.path(), .save_total_limit = 1}, tiny_writer());
  checkpoints.save(state, no_state);
  state.progress.global_step = 2;
  EXPECT_EQ(test::catch_user_error([&] { checkpoints.save(state, fail); }).kind(),
            ErrorKind::kEnvironment);
  EXPECT_EQ(checkpoints.existing_steps(), (std::vector<int64_t>{1}));
  EXPECT_EQ(names_in(dir.path()), (std::vector<std::string>{"checkpoint-1", "last"}));
}

TEST(Checkpoints, KeepsTheBestUnderAnotherSpellingOfItsPath) {
  test::TempDir dir;
  Checkpoints checkpoints({.run_dir = dir.path(), .save_total_limit = 1}, tiny_writer());
  for (const int64_t step : {9, 10, 11}) {
    TrainerState state = state_at(step);
    // of the run that was resumed, seen from its directory
    state.progress.best_model_checkpoint = "somewhere/else/checkpoint-9";
    checkpoints.save(state, no_state);
  }
  EXPECT_EQ(checkpoints.existing_steps(), (std::vector<int64_t>{9, 11}));
  EXPECT_EQ(names_in(dir.path()),
            (std::vector<std::string>{"best", "checkpoint-11", "checkpoint-9", "last"}));
}

TEST(Checkpoints, TheBestOfAnotherMetricIsNeverDeleted) {
  test::TempDir dir;
  Checkpoints checkpoints({.run_dir = dir.path(), .save_total_limit = 1}, tiny_writer());
  TrainerState state = state_at(1);
  state.progress.update_best(0.5, true, 1);
  state.progress.best_of = {"eval_rollout_f1", true, "a"};
  checkpoints.save(state, no_state);
  state.progress.reset_best({"eval_rollout_duplicates", false, "a"});
  for (const int64_t step : {2, 3, 4}) {
    state.progress.global_step = step;
    state.progress.update_best(step == 3 ? 0.1 : 0.2, false, step);
    checkpoints.save(state, no_state);
  }
  EXPECT_EQ(checkpoints.existing_steps(), (std::vector<int64_t>{1, 3, 4}));
}

}  // namespace rematch
