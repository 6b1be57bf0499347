#include "base/file.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

TEST(StagedDirectory, AppearsOnlyOnCommit) {
  test::TempDir dir;
  {
    StagedDirectory staged(dir.file("checkpoint-1"));
    write_file_atomic(staged.path() + "/a", "1");
    EXPECT_FALSE(std::filesystem::exists(dir.file("checkpoint-1")));
    staged.commit();
  }
  EXPECT_EQ(read_file(dir.file("checkpoint-1") + "/a"), "1");
}

TEST(StagedDirectory, LeavesNothingWhenAbandonedAndKeepsTheOldOne) {
  test::TempDir dir;
  dir.write("checkpoint-1/a", "old");
  {
    StagedDirectory staged(dir.file("checkpoint-1"));
  }
  EXPECT_EQ(read_file(dir.file("checkpoint-1") + "/a"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(StagedDirectory, ReplacesTheOldOneWholeAndLeavesNothingElse) {
  test::TempDir dir;
  dir.write("checkpoint-1/only-in-old", "old");
  {
    StagedDirectory staged(dir.file("checkpoint-1"));
    write_file_atomic(staged.path() + "/a", "new");
    staged.commit();
  }
  EXPECT_EQ(read_file(dir.file("checkpoint-1") + "/a"), "new");
  EXPECT_FALSE(std::filesystem::exists(dir.file("checkpoint-1/only-in-old")));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(FileWriter, ReportsAFullDisk) {
  const UserError error = test::catch_user_error([] {
    FileWriter writer("/dev/full");
    writer.write(std::string(1 << 20, 'x'));
    writer.finish();
  });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problems()[0].what, "No space left on device");
}

TEST(ReadFile, NamesTheMissingPath) {
  const UserError error = test::catch_user_error([] { read_file("/nowhere/x"); });
  EXPECT_EQ(error.problems()[0].where, "/nowhere/x");
}

}  // namespace rematch
