// A save that runs out of room, at every point where it can.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "learn/resume/resume.h"
#include "learn/train/checkpoints.h"
#include "model/checkpoint/safetensors.h"
#include "run_states.h"
#include "support/paths.h"
#include "support/state_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr int kSaved = 0, kRefused = 1, kOther = 2;

void save_in(const std::string& run_dir, TrainerState& state, const RunState& run) {
  Checkpoints checkpoints(
      {.run_dir = run_dir, .save_total_limit = 1}, [](const std::string& directory) {
        write_safetensors(directory + "/model.safetensors", {{"w", at::ones({1000})}});
      });
  checkpoints.save(state, [&run](const std::string& directory) {
    test::write_state_files(
        directory,
        {to_wire(run), {{"w.exp_avg", at::ones({2000})}, {"w.exp_avg_sq", at::ones({2000})}}});
  });
}

/// Saves in a process that may write no file longer than `limit_bytes`.
/// @return kSaved, kRefused (an environment error that names a file) or kOther
int save_with_limit(const std::string& run_dir, TrainerState state, const RunState& run,
                    rlim_t limit_bytes) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{limit_bytes, limit_bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    try {
      save_in(run_dir, state, run);
      ::_exit(kSaved);
    } catch (const UserError& error) {
      const Problem& problem = error.problems()[0];
      ::_exit(error.kind() == ErrorKind::kEnvironment && !problem.where.empty() &&
                      problem.what == "File too large"
                  ? kRefused
                  : kOther);
    } catch (...) {
      ::_exit(kOther);
    }
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : kOther;
}

}  // namespace

TEST(DiskFull, ASaveThatFailsAnywhereLeavesTheEarlierCheckpointAndNoTrace) {
  const test::TempDir dir;
  RunState run = test::busy_run();
  TrainerState state;
  for (int i = 0; i < 2000; ++i)
    state.progress.log_history.push_back({.step = i, .values = {{"loss", i / 7.0}}});
  state.progress.global_step = run.num_steps;
  TrainerState first = state;
  save_in(dir.path(), first, run);
  run.open->step0 += 2;
  run.num_steps = state.progress.global_step = 13;
  // Sizes of the files, one by one: model 4 kB, state.bin some kB, optimizer 16 kB,
  // trainer_state.json more than 100 kB.
  for (const rlim_t limit_bytes : {0, 1, 1000, 4200, 6000, 10000, 16100, 17000, 60000}) {
    EXPECT_EQ(save_with_limit(dir.path(), state, run, limit_bytes), kRefused) << limit_bytes;
    EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 2)
        << "more than the checkpoint and `last` was left behind with " << limit_bytes;
    EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-11"));
  }
  EXPECT_EQ(read_checkpoint(dir.file("checkpoint-11"), test::kVocabSize).run.num_steps, 11);
  EXPECT_EQ(save_with_limit(dir.path(), state, run, 10'000'000), kSaved);
  EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-13"));
  EXPECT_FALSE(fs::exists(dir.file("checkpoint-11")));
}

TEST(DiskFull, ASaveThatReplacesACheckpointOfTheSameStepLeavesItAsItWas) {
  const test::TempDir dir;
  const RunState run = test::busy_run();
  TrainerState state;
  state.progress.global_step = run.num_steps;
  save_in(dir.path(), state, run);
  EXPECT_EQ(save_with_limit(dir.path(), state, run, 10000), kRefused);
  EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-11"));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 2);
}

}  // namespace rematch
