#include "learn/resume/resume.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "base/error.h"
#include "base/file.h"
#include "learn/resume/checkpoint_list.h"
#include "learn/resume/run_lock.h"
#include "learn/train/checkpoints.h"
#include "run_states.h"
#include "support/capture.h"
#include "support/paths.h"
#include "support/state_files.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

/// Checkpoints of a run that can be resumed, or not with `only_model`.
void save_steps(const std::string& run_dir, const std::vector<int64_t>& steps,
                bool only_model = false) {
  for (const int64_t step : steps) {
    RunState run;
    run.num_steps = step;
    const Checkpoints::Writer write_model = [](const std::string& directory) {
      write_file_atomic(directory + "/model.safetensors", "weights");
    };
    const Checkpoints::Writer write_state = [&](const std::string& directory) {
      test::write_state_files(directory, {to_wire(run), {}});
    };
    TrainerState state;
    state.progress.global_step = step;
    Checkpoints({.run_dir = run_dir, .save_only_model = only_model}, write_model)
        .save(state, write_state);
  }
}

void truncate(const std::string& path) { fs::resize_file(path, fs::file_size(path) / 2); }

int64_t pid_of_a_dead_process() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(0);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return child;
}

}  // namespace

TEST(LatestComplete, SortsByNumber) {
  const test::TempDir dir;
  save_steps(dir.path(), {9, 10, 2});
  const ResumeChoice choice = latest_complete(dir.path());
  EXPECT_EQ(choice.checkpoint, dir.file("checkpoint-10"));
  EXPECT_TRUE(choice.warnings.empty());
  EXPECT_EQ(read_checkpoint(*choice.checkpoint, 10).progress.global_step, 10);
}

TEST(LatestComplete, StartsANewRunWithoutCheckpoints) {
  const test::TempDir dir;
  dir.write("logging.jsonl", "");
  dir.write("checkpoint-x/trainer_state.json", "{}");
  dir.write("checkpoint-7", "a file");
  for (const std::string& run_dir : {dir.path(), dir.file("nowhere")}) {
    const ResumeChoice choice = latest_complete(run_dir);
    EXPECT_FALSE(choice.checkpoint);
    EXPECT_TRUE(choice.warnings.empty());
  }
}

TEST(LatestComplete, SkipsDamagedCheckpointsWithAReason) {
  for (const char* file : {"training_state/state.bin", "training_state/optimizer.safetensors",
                           "training_state/manifest.json", "model.safetensors"}) {
    const test::TempDir dir;
    save_steps(dir.path(), {9, 10});
    truncate(dir.file(std::string("checkpoint-10/") + file));
    const ResumeChoice choice = latest_complete(dir.path());
    EXPECT_EQ(choice.checkpoint, dir.file("checkpoint-9")) << file;
    ASSERT_EQ(choice.warnings.size(), 1u);
    EXPECT_NE(choice.warnings[0].find(file), std::string::npos) << choice.warnings[0];
  }
}

TEST(LatestComplete, SkipsIncompleteCheckpoints) {
  const test::TempDir dir;
  save_steps(dir.path(), {3});
  dir.write("checkpoint-4/model.safetensors", "half a copy");
  const ResumeChoice choice = latest_complete(dir.path());
  EXPECT_EQ(choice.checkpoint, dir.file("checkpoint-3"));
  EXPECT_NE(choice.warnings.at(0).find("checkpoint-4"), std::string::npos);
}

TEST(LatestComplete, RefusesToRestartOverDamagedCheckpoints) {
  const test::TempDir dir;
  save_steps(dir.path(), {3, 4});
  truncate(dir.file("checkpoint-3/training_state/state.bin"));
  truncate(dir.file("checkpoint-4/training_state/state.bin"));
  const UserError error = test::catch_user_error([&] { latest_complete(dir.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems().size(), 2u);
}

TEST(LatestComplete, RefusesCheckpointsWithWeightsOnly) {
  const test::TempDir dir;
  save_steps(dir.path(), {3});
  save_steps(dir.path(), {4}, true);
  const UserError error = test::catch_user_error([&] { latest_complete(dir.path()); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, dir.file("checkpoint-4"));
  EXPECT_NE(error.problems()[0].what.find("save_only_model: true"), std::string::npos);
}

TEST(ResolveResume, UsesAPathUnchanged) {
  const test::TempDir dir;
  save_steps(dir.path(), {3, 4});
  EXPECT_EQ(resolve_resume("latest", dir.path()).checkpoint, dir.file("checkpoint-4"));
  EXPECT_EQ(resolve_resume(dir.file("checkpoint-4/"), dir.path()).checkpoint,
            dir.file("checkpoint-4"));
  EXPECT_TRUE(resolve_resume(dir.file("checkpoint-4"), dir.path()).warnings.empty());
  EXPECT_TRUE(resolve_resume(dir.file("checkpoint-3"), dir.file("other")).warnings.empty());
  const ResumeChoice older = resolve_resume(dir.file("checkpoint-3"), dir.path());
  EXPECT_EQ(older.checkpoint, dir.file("checkpoint-3"));
  ASSERT_EQ(older.warnings.size(), 1u);
  EXPECT_NE(older.warnings[0].find("checkpoint-4"), std::string::npos);
}

TEST(ResolveResume, ListsCheckpointsWhenThePathIsMissing) {
  const test::TempDir dir;
  save_steps(dir.file("run"), {300, 400});
  const UserError error = test::catch_user_error(
      [&] { resolve_resume(dir.file("run/checkpoint-30"), dir.file("run")); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problems()[0].where, "training.resume_from_checkpoint");
  EXPECT_NE(error.problems()[0].what.find(dir.file("run/checkpoint-300")), std::string::npos)
      << error.what();
  // A slip in the run's name, seen from a run directory without checkpoints.
  const UserError slip =
      test::catch_user_error([&] { resolve_resume(dir.file("runs"), dir.file("new")); });
  EXPECT_NE(slip.problems()[0].what.find(dir.file("run")), std::string::npos) << slip.what();
}

TEST(ResolveResume, RefusesFilesAndRunDirectories) {
  const test::TempDir dir;
  save_steps(dir.file("run"), {3, 4});
  dir.write("file", "");
  EXPECT_EQ(
      test::catch_user_error([&] { resolve_resume(dir.file("file"), dir.file("run")); }).kind(),
      ErrorKind::kConfig);
  const UserError error =
      test::catch_user_error([&] { resolve_resume(dir.file("run"), dir.file("other")); });
  EXPECT_EQ(error.kind(), ErrorKind::kConfig);
  EXPECT_NE(error.problems()[0].fix.find(dir.file("run/checkpoint-4")), std::string::npos);
}

TEST(ResolveResume, RefusesDamagedAndForeignDirectories) {
  const test::TempDir dir;
  save_steps(dir.path(), {3, 4, 5});
  truncate(dir.file("checkpoint-3/training_state/state.bin"));
  fs::remove(dir.file("checkpoint-4/trainer_state.json"));
  fs::remove_all(dir.file("checkpoint-5/training_state"));
  dir.write("model/config.json", "{}");
  for (const char* name : {"checkpoint-3", "checkpoint-4", "checkpoint-5", "model"}) {
    EXPECT_EQ(test::catch_user_error([&] { resolve_resume(dir.file(name), dir.path()); }).kind(),
              ErrorKind::kData)
        << name;
  }
}

TEST(RemoveLeftovers, RemovesOnlyFilesOfDeadProcesses) {
  const test::TempDir dir;
  const std::string dead = std::to_string(pid_of_a_dead_process());
  const std::string parent = std::to_string(::getppid()), own = std::to_string(::getpid());
  dir.write(".tmp-checkpoint-4-" + dead + "/model.safetensors", "half");
  dir.write(".tmp-checkpoint-4-" + own + "/model.safetensors",
            "of an earlier process with our number");
  const std::vector<std::string> others = {
      ".tmp-checkpoint-4-" + parent, ".tmp-checkpoint-4",    ".tmp-checkpoint-4-x",
      ".tmp-checkpoint-x-" + dead,   ".tmp-other-4-" + dead, "checkpoint-4",
      ".tmp-checkpoint-4-0"};
  for (const std::string& kept : others) {
    dir.write(kept + "/model.safetensors", "kept");
  }
  const std::vector<std::string> removed = remove_leftovers(dir.path());
  EXPECT_EQ(removed.size(), 2u);
  for (const std::string& name : removed) EXPECT_FALSE(fs::exists(dir.file(name)));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 7);
  EXPECT_TRUE(remove_leftovers(dir.file("nowhere")).empty());
}

TEST(RemoveLeftovers, RemovesHalfWrittenFiles) {
  const test::TempDir dir;
  const std::string dead = std::to_string(pid_of_a_dead_process()),
                    parent = std::to_string(::getppid());
  for (const std::string& name : {"args.json.tmp-" + dead, "logging.jsonl.tmp-" + dead,
                                  "args.json.tmp-" + parent, "notes.txt.tmp-" + dead}) {
    dir.write(name, "half");
  }
  dir.write("args.json", "{}");
  EXPECT_EQ(remove_leftovers(dir.path()),
            (std::vector<std::string>{"args.json.tmp-" + dead, "logging.jsonl.tmp-" + dead}));
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 3);
}

TEST(RemoveLeftovers, RestoresACheckpointWhoseReplacementFailed) {
  const test::TempDir dir;
  const std::string dead = std::to_string(pid_of_a_dead_process());
  save_steps(dir.path(), {4});
  fs::rename(dir.file("checkpoint-4"), dir.file(".tmp-checkpoint-4-" + dead + ".old"));
  dir.write(".tmp-checkpoint-4-" + dead + "/model.safetensors", "half");
  EXPECT_EQ(remove_leftovers(dir.path()).size(), 2u);
  EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-4"));
  // With the replacement in place, the old one is only in the way.
  fs::copy(dir.file("checkpoint-4"), dir.file(".tmp-checkpoint-4-" + dead + ".old"),
           fs::copy_options::recursive);
  EXPECT_EQ(remove_leftovers(dir.path()).size(), 1u);
  EXPECT_EQ(std::distance(fs::directory_iterator(dir.path()), {}), 2)
      << "the checkpoint and `last`";
}

TEST(LatestComplete, DetectsDamageInEveryFile) {
  for (const char* file : {"trainer_state.json", "tokenizer.json", "preprocessor_config.json",
                           "additional_chat_templates/other.jinja"}) {
    const test::TempDir dir;
    RunState run;
    const Checkpoints::Writer write_model = [](const std::string& directory) {
      write_file_atomic(directory + "/tokenizer.json", "a tokenizer");
      write_file_atomic(directory + "/preprocessor_config.json", "a processor");
      make_directories(directory + "/additional_chat_templates");
      write_file_atomic(directory + "/additional_chat_templates/other.jinja", "a template");
    };
    const Checkpoints::Writer write_state = [&](const std::string& directory) {
      test::write_state_files(directory, {to_wire(run), {}});
    };
    for (const int64_t step : {1, 2}) {
      TrainerState state;
      state.progress.global_step = step;
      Checkpoints({.run_dir = dir.path()}, write_model).save(state, write_state);
    }
    truncate(dir.file(std::string("checkpoint-2/") + file));
    const ResumeChoice choice = latest_complete(dir.path());
    EXPECT_EQ(choice.checkpoint, dir.file("checkpoint-1")) << file;
    ASSERT_EQ(choice.warnings.size(), 1u);
    EXPECT_NE(choice.warnings[0].find(file), std::string::npos) << choice.warnings[0];
  }
}

TEST(MoveLaterCheckpointsAside, UsesADirectoryForEachHistory) {
  const test::TempDir dir;
  save_steps(dir.path(), {1, 2, 3});
  dir.write("logging.jsonl", "{\"step\": 3}\n");
  EXPECT_FALSE(move_later_checkpoints_aside(dir.path(), 3));
  EXPECT_EQ(move_later_checkpoints_aside(dir.path(), 1), dir.file("abandoned-1"));
  EXPECT_EQ(list_checkpoints(dir.path()).size(), 1u);
  EXPECT_EQ(list_checkpoints(dir.file("abandoned-1")).size(), 2u);
  EXPECT_EQ(read_file(dir.file("abandoned-1/logging.jsonl")), "{\"step\": 3}\n");
  save_steps(dir.path(), {2});
  EXPECT_EQ(move_later_checkpoints_aside(dir.path(), 1), dir.file("abandoned-2"));
  EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-1"));
}

TEST(MoveLaterCheckpointsAside, TakesTheirEvaluationsToo) {
  const test::TempDir dir;
  save_steps(dir.path(), {1, 2, 20});
  for (const char* name : {"checkpoint-1.json", "checkpoint-2.json", "checkpoint-2.truth.json",
                           "checkpoint-15.json", "checkpoint-20-other-weights.json", "base.json"})
    dir.write(std::string("eval/") + name, "{}");
  dir.write("eval_results.json", "{}");
  EXPECT_EQ(move_later_checkpoints_aside(dir.path(), 1), dir.file("abandoned-1"));
  EXPECT_EQ(list_names(dir.file("eval")), (Strings{"base.json", "checkpoint-1.json"}));
  EXPECT_EQ(list_names(dir.file("abandoned-1/eval")).size(), 4u) << "also of a rotated one";
  EXPECT_FALSE(fs::exists(dir.file("eval_results.json")));
}

TEST(ListCheckpoints, SortsByTheStoredStep) {
  const test::TempDir dir;
  save_steps(dir.path(), {1, 2});
  fs::copy(dir.file("checkpoint-1"), dir.file("checkpoint-99"), fs::copy_options::recursive);
  dir.write("checkpoint-50/notes.txt", "of another program");
  EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-2"));
  const std::vector<CheckpointName> saved = list_saved_checkpoints(dir.path());
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_EQ(saved.back().path, dir.file("checkpoint-2"));
  EXPECT_EQ(move_later_checkpoints_aside(dir.path(), 1), dir.file("abandoned-1"));
  EXPECT_TRUE(fs::exists(dir.file("checkpoint-99")) && fs::exists(dir.file("checkpoint-50")));
  EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-1"));
  fs::remove_all(dir.file("checkpoint-1"));
  const ResumeChoice choice = latest_complete(dir.path());
  EXPECT_EQ(choice.checkpoint, dir.file("checkpoint-99"));
  EXPECT_NE(choice.warnings.back().find("after step 1"), std::string::npos);
}

TEST(ResolveResume, WarnsOnlyOfCheckpointsThatWillBeMovedAside) {
  const test::TempDir dir;
  save_steps(dir.path(), {1, 2});
  dir.write("checkpoint-50/notes.txt", "of another program");
  EXPECT_TRUE(resolve_resume(dir.file("checkpoint-2"), dir.path()).warnings.empty());
  const ResumeChoice older = resolve_resume(dir.file("checkpoint-1"), dir.path());
  ASSERT_EQ(older.warnings.size(), 1u);
  EXPECT_NE(older.warnings[0].find("is older than " + dir.file("checkpoint-2")), std::string::npos);
}

TEST(ListCheckpoints, IgnoresACheckpointWithATornTrainerState) {
  for (const double part : {0.0, 0.5, 0.99}) {
    const test::TempDir dir;
    save_steps(dir.path(), {1, 2});
    const std::string state = dir.file("checkpoint-2/trainer_state.json");
    const std::string text = read_file(state);
    fs::resize_file(state, static_cast<size_t>(part * static_cast<double>(text.size())));
    EXPECT_EQ(list_saved_checkpoints(dir.path()).size(), 1u) << part;
    EXPECT_FALSE(move_later_checkpoints_aside(dir.path(), 1)) << part;
    EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-1"));
    fs::resize_file(state, text.size());  // zeros at the end, as after a loss of power
    EXPECT_EQ(list_saved_checkpoints(dir.path()).size(), 1u) << part;
    write_file_atomic(state, text);
    EXPECT_EQ(list_saved_checkpoints(dir.path()).size(), 2u);
  }
}

TEST(ResolveResume, ALinkOfTheRunIsTheCheckpointItLeadsTo) {
  const test::TempDir dir;
  save_steps(dir.path(), {9, 10});
  EXPECT_EQ(resolve_resume(dir.file("last"), dir.path()).checkpoint, dir.file("checkpoint-10"));
}

TEST(ListCheckpoints, SavingMovesAForeignDirectoryAside) {
  const test::TempDir dir;
  dir.write("checkpoint-3/notes.txt", "of another program");
  save_steps(dir.path(), {3});
  EXPECT_TRUE(fs::exists(dir.file("abandoned-1/checkpoint-3/notes.txt")));
  EXPECT_EQ(latest_complete(dir.path()).checkpoint, dir.file("checkpoint-3"));
  save_steps(dir.path(), {3});
  EXPECT_FALSE(fs::exists(dir.file("abandoned-2")));
}

namespace {

/// Exit code of a process that tries to take the lock: 0 taken, 4 refused.
int lock_in_a_child(const std::string& run_dir) {
  const pid_t child = ::fork();
  if (child == 0) {
    try {
      const RunLock lock(run_dir);
      ::_exit(0);
    } catch (const UserError& error) {
      ::_exit(exit_code(error.kind()));
    }
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST(RunLock, IsReleasedWithItsObject) {
  const test::TempDir dir;
  {
    const RunLock lock(dir.path());
    EXPECT_EQ(lock_in_a_child(dir.path()), 4);
  }
  EXPECT_EQ(lock_in_a_child(dir.path()), 0);
}

TEST(RunLock, IgnoresTheRecordOfADeadRun) {
  const test::TempDir dir;
  EXPECT_EQ(lock_in_a_child(dir.path()), 0);  // it died with the record in the file
  EXPECT_NE(read_file(dir.file(".lock")), "");
  EXPECT_EQ(lock_in_a_child(dir.path()), 0);
  for (const char* text : {"", "{", "[]", "{\"pid\": 1}", "\xff"}) {
    dir.write(".lock", text);
    EXPECT_EQ(lock_in_a_child(dir.path()), 0) << text;
  }
}

}  // namespace rematch
