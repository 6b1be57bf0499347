#include "base/output_file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "base/interrupt.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

namespace fs = std::filesystem;

TEST(InputFiles, RefuseTheSameFileUnderAnyName) {
  const test::TempDir directory;
  const std::string path = directory.write("a/x.jsonl", "x"),
                    other = directory.write("a/y.jsonl", "x");
  fs::create_symlink(path, directory.file("link"));
  fs::create_hard_link(path, directory.file("hard"));
  const InputFiles inputs{path};
  for (const std::string& out :
       {path, directory.file("a/../a/./x.jsonl"), directory.file("link"), directory.file("hard")})
    EXPECT_EQ(test::catch_user_error([&] { inputs.refuse(out); }).kind(), ErrorKind::kConfig)
        << out;
  EXPECT_NO_THROW(inputs.refuse(other));
  EXPECT_NO_THROW(inputs.refuse(directory.file("new.jsonl")));
}

TEST(InputFiles, PassOverWhatCannotBeReplaced) {
  const test::TempDir directory;
  const InputFiles inputs{directory.path(), directory.file("nowhere"), "", "/dev/null"};
  EXPECT_NO_THROW(inputs.refuse(directory.path()));
  EXPECT_NO_THROW(inputs.refuse("/dev/null"));
}

TEST(OutputFile, LeavesTheOldFileUntilTheNewOneIsComplete) {
  const test::TempDir directory;
  const std::string path = directory.write("out/x.jsonl", "old");
  {
    OutputFile file(path, {});
    file.write("half");
  }
  EXPECT_EQ(read_file(path), "old");
  {
    OutputFile file(path, {});
    file.write("new");
    file.commit();
  }
  EXPECT_EQ(read_file(path), "new");
  EXPECT_THROW(write_output(path, {path}, "newer"), UserError);
  EXPECT_EQ(read_file(path), "new");
  EXPECT_EQ(std::distance(fs::directory_iterator(directory.file("out")), {}), 1);
}

TEST(OutputFile, TheFilesOfARunAreRefused) {
  const test::TempDir directory;
  const std::string log = directory.write("run/logging.jsonl", "old");
  EXPECT_NO_THROW(write_output(log, {}, "new")) << "a file of that name elsewhere";
  directory.write("run/args.json", "{}");
  EXPECT_THROW(write_output(log, {}, "newer"), UserError);
  EXPECT_EQ(read_file(log), "new");
  EXPECT_NO_THROW(write_output(directory.file("run/rollouts.jsonl"), {}, "new"));
}

// SIGHUP ends a process at once that has never checked for interrupts; this file would stay.
TEST(OutputFile, MakesAClosedTerminalWaitForTheNextCheck) {
  const test::TempDir dir;
  const int64_t before = num_interrupt_checks();
  const OutputFile file(dir.file("a.txt"), {});
  EXPECT_GT(num_interrupt_checks(), before);
}

}  // namespace rematch
