#include "learn/resume/run_links.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "learn/resume/resume.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

void make_checkpoint(const test::TempDir& dir, const std::string& path) {
  dir.write(path + "/config.json", "{}");
}

RunProgress with_best(const std::string& path) {
  RunProgress progress;
  progress.best_model_checkpoint = path;
  return progress;
}

std::string target(const test::TempDir& dir, const char* name) {
  return fs::is_symlink(dir.file(name)) ? fs::read_symlink(dir.file(name)).string() : "none";
}

}  // namespace

TEST(RunLinks, LeadToTheBestAndTheNewest) {
  const test::TempDir dir;
  for (const char* name : {"checkpoint-2", "checkpoint-4"}) make_checkpoint(dir, name);
  EXPECT_TRUE(update_run_links(dir.path(), with_best("elsewhere/checkpoint-2"), 4).empty());
  EXPECT_EQ(target(dir, "best"), "checkpoint-2");
  EXPECT_EQ(target(dir, "last"), "checkpoint-4");
  EXPECT_TRUE(update_run_links(dir.path(), with_best(dir.file("checkpoint-4")), 4).empty());
  EXPECT_EQ(target(dir, "best"), "checkpoint-4");
  EXPECT_TRUE(update_run_links(dir.path(), RunProgress{}, 4).empty());
  EXPECT_EQ(target(dir, "best"), "none") << "no score is the best any more";
  EXPECT_TRUE(update_run_links(dir.path(), with_best("checkpoint-9"), 9).empty());
  EXPECT_EQ(target(dir, "last"), "none") << "it would lead nowhere";
  EXPECT_TRUE(fs::exists(dir.file("checkpoint-4/config.json"))) << "links are never followed";
}

TEST(RunLinks, AreNoCheckpoints) {
  const test::TempDir dir;
  make_checkpoint(dir, "checkpoint-2");
  update_run_links(dir.path(), with_best("checkpoint-2"), 2);
  EXPECT_EQ(list_checkpoints(dir.path()).size(), 1u);
  EXPECT_TRUE(remove_leftovers(dir.path()).empty());
  fs::create_directory_symlink("checkpoint-2", dir.file("best.tmp-999999999"));
  EXPECT_EQ(remove_leftovers(dir.path()), std::vector<std::string>{"best.tmp-999999999"});
  EXPECT_TRUE(fs::exists(dir.file("checkpoint-2/config.json")));
}

TEST(RunLinks, DoNotReplaceFilesOfTheUser) {
  const test::TempDir dir;
  make_checkpoint(dir, "checkpoint-2");
  dir.write("best/notes.txt", "mine");
  const std::vector<std::string> warnings =
      update_run_links(dir.path(), with_best("checkpoint-2"), 2);
  ASSERT_EQ(warnings.size(), 1u);
  EXPECT_NE(warnings[0].find("something else has that name"), std::string::npos);
  EXPECT_TRUE(fs::exists(dir.file("best/notes.txt")));
  EXPECT_EQ(target(dir, "last"), "checkpoint-2");
}

TEST(FindModel, SaysThatARunNeverBeatItsStart) {
  const test::TempDir dir;
  dir.write("checkpoint-4/config.json", "{}");
  dir.write("args.json", R"({"model": {"model": "base"}})");
  std::filesystem::create_directory_symlink("checkpoint-4", dir.file("last"));
  for (const auto& [state, says] :
       {std::pair{R"({"best_global_step": 0})", true},
        std::pair{R"({"best_global_step": 4})", false},
        std::pair{R"({"best_global_step": null})", false}, std::pair{"{", false}}) {
    dir.write("checkpoint-4/trainer_state.json", state);
    EXPECT_EQ(find_model(dir.path()).note.find("its start: base is better") != std::string::npos,
              says)
        << state;
  }
}

TEST(FindModel, TakesTheBestOfARunThenTheLastThenTheNewest) {
  const test::TempDir dir;
  for (const char* name : {"checkpoint-2", "checkpoint-4", "checkpoint-10"})
    make_checkpoint(dir, name);
  EXPECT_EQ(find_model(dir.path()).path, dir.file("checkpoint-10"));
  update_run_links(dir.path(), RunProgress{}, 4);
  EXPECT_EQ(find_model(dir.path()).path, dir.file("checkpoint-4"));
  update_run_links(dir.path(), with_best("checkpoint-2"), 4);
  EXPECT_EQ(find_model(dir.path()).path, dir.file("checkpoint-2"));
  EXPECT_NE(find_model(dir.path()).note.find("the best checkpoint of"), std::string::npos);
  fs::remove_all(dir.file("checkpoint-2"));
  EXPECT_EQ(find_model(dir.path()).path, dir.file("checkpoint-4")) << "best leads nowhere";
  for (const std::string& model : {dir.file("checkpoint-4"), dir.file("nowhere")}) {
    EXPECT_EQ(find_model(model).path, model);
    EXPECT_EQ(find_model(model).note, "");
  }
}

TEST(FindModel, NamesARunWhoseCheckpointsAreGone) {
  const test::TempDir dir;
  dir.write("args.json", "{}");
  std::filesystem::create_directory_symlink("checkpoint-2", dir.file("best"));
  const UserError error = test::catch_user_error([&] { find_model(dir.path()); });
  EXPECT_EQ(error.problems().front().error, "this run has no checkpoint");
}

}  // namespace rematch
