#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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

TEST(StagedDirectory, ALinkToADirectoryStays) {
  test::TempDir dir;
  std::filesystem::create_directories(dir.file("disk/target"));
  std::filesystem::create_directory_symlink(dir.file("disk/target"), dir.file("link"));
  StagedDirectory staged(dir.file("link/"));
  write_file_atomic(staged.path() + "/a", "new");
  staged.commit();
  EXPECT_TRUE(std::filesystem::is_symlink(dir.file("link")));
  EXPECT_EQ(read_file(dir.file("disk/target/a")), "new");
}

TEST(StagedFile, LeavesNothingWhenAbandonedAndKeepsTheOldOne) {
  test::TempDir dir;
  dir.write("a.txt", "old");
  {
    StagedFile staged(dir.file("a.txt"));
    staged.write("new");
    EXPECT_EQ(read_file(dir.file("a.txt")), "old");
  }
  EXPECT_EQ(read_file(dir.file("a.txt")), "old");
  StagedFile staged(dir.file("a.txt"));
  staged.write("new");
  staged.commit();
  EXPECT_EQ(read_file(dir.file("a.txt")), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir.path()), {}), 1);
}

TEST(StagedFile, ErrorsNameTheFileThatWasAskedFor) {
  test::TempDir dir;
  const UserError nowhere =
      test::catch_user_error([&] { write_file_atomic(dir.file("none/x.png"), "x"); });
  EXPECT_EQ(nowhere.problems()[0].error, "cannot write " + dir.file("none/x.png"));
  EXPECT_EQ(std::string(nowhere.what()).find(".tmp-"), std::string::npos) << nowhere.what();
  const UserError directory = test::catch_user_error([&] { write_file_atomic(dir.path(), "x"); });
  EXPECT_EQ(directory.problems()[0].error, "cannot write " + dir.path());
  EXPECT_EQ(directory.problems()[0].fix, "give a file, not a directory");
}

TEST(StagedFile, WritesEveryNameThatAFileSystemTakes) {
  test::TempDir dir;
  const std::string first = dir.file(std::string(254, 'x') + "1"),
                    second = dir.file(std::string(254, 'x') + "2");
  StagedFile one(first), other(second);
  one.write("1");
  other.write("2");
  one.commit();
  other.commit();
  EXPECT_EQ(read_file(first) + read_file(second), "12");
  StagedDirectory directory(dir.file(std::string(255, 'd')));
  directory.commit();
  EXPECT_TRUE(std::filesystem::is_directory(dir.file(std::string(255, 'd'))));
  const UserError error =
      test::catch_user_error([&] { StagedFile(dir.file(std::string(256, 'x'))); });
  EXPECT_EQ(error.problems()[0].what, "File name too long");
  EXPECT_EQ(error.problems()[0].fix, "choose a shorter name");
}

TEST(StagedFile, WritesToAPipeInsteadOfReplacingIt) {
  test::TempDir dir;
  ASSERT_EQ(::mkfifo(dir.file("pipe").c_str(), 0600), 0);
  const int reader = ::open(dir.file("pipe").c_str(), O_RDONLY | O_NONBLOCK);
  write_file_atomic(dir.file("pipe"), "hello");
  char text[5] = {};
  EXPECT_EQ(::read(reader, text, sizeof text), 5);
  EXPECT_EQ(std::string(text, sizeof text), "hello");
  EXPECT_TRUE(std::filesystem::is_fifo(dir.file("pipe")));
  ::close(reader);
}

TEST(StagedFile, ReplacesWhatALinkLeadsToAndKeepsTheLink) {
  test::TempDir dir;
  std::filesystem::create_directory(dir.file("large"));
  dir.write("large/a.txt", "old");
  std::filesystem::create_symlink("large/a.txt", dir.file("a.txt"));
  std::filesystem::create_symlink("large/b.txt", dir.file("b.txt"));
  for (const char* name : {"a.txt", "b.txt"}) {
    write_file_atomic(dir.file(name), "new");
    EXPECT_TRUE(std::filesystem::is_symlink(dir.file(name)));
    EXPECT_EQ(read_file(dir.file("large/") + name), "new");
  }
}

TEST(StagedFile, WritesToAStreamOfTheProcessInsteadOfReplacingItsName) {
  test::TempDir dir;
  dir.write("out", "before ");
  const int stream = ::open(dir.file("out").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  const std::string name = "/dev/fd/" + std::to_string(stream);
  std::filesystem::create_symlink(name, dir.file("link"));
  write_file_atomic(name, "first ");
  write_file_atomic(dir.file("link"), "second");
  ::close(stream);
  EXPECT_EQ(read_file(dir.file("out")), "before first second");
  EXPECT_TRUE(std::filesystem::is_symlink(dir.file("link")));
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

TEST(ReadFile, AFileThatMayNotBeReadIsNotToldToBeWrittenElsewhere) {
  const test::TempDir dir;
  std::filesystem::permissions(dir.write("secret", "x"), std::filesystem::perms::none);
  const bool is_root = ::geteuid() == 0;
  constexpr uid_t kNobody = 65534;
  ASSERT_TRUE(!is_root || ::seteuid(kNobody) == 0);
  const UserError error = test::catch_user_error([&] { read_file(dir.file("secret")); });
  ASSERT_TRUE(!is_root || ::seteuid(0) == 0);
  EXPECT_EQ(error.problems()[0].fix,
            "check the permissions (ls -l) of the file and of the directories above it");
}

TEST(ReadFile, RefusesWhatIsNotARegularFileAtOnce) {
  const test::TempDir dir;
  ASSERT_EQ(::mkfifo(dir.file("pipe").c_str(), 0600), 0);
  const int listener = ::socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  // A short name of the directory: a socket's may have 107 characters.
  const int folder = ::open(dir.path().c_str(), O_RDONLY | O_DIRECTORY);
  fmt::format("/proc/self/fd/{}/socket", folder)
      .copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const auto& [path, kind] :
       {std::pair{dir.file("pipe"), "a pipe"}, std::pair{dir.file("socket"), "a socket"},
        std::pair{dir.path(), "a directory"}, std::pair{std::string("/dev/zero"), "a device"}}) {
    for (const bool mapped : {false, true}) {
      const UserError error = test::catch_user_error(
          [&, &name = path] { mapped ? (void)MappedFile(name) : (void)read_file(name); });
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      EXPECT_EQ(error.problems()[0].what, fmt::format("it is {}, not a regular file", kind))
          << path;
    }
  }
  ::close(listener);
  ::close(folder);
}

// Memory of files that this process holds, in kB.
int64_t mapped_kb() {
  const std::string status = read_file("/proc/self/status");
  const size_t at = status.find("RssFile:");
  return at == std::string::npos ? 0 : std::stoll(status.substr(at + 8));
}

TEST(MappedFile, GivesThePagesOfAPartBackAndReadsThemAgain) {
  const test::TempDir dir;
  const std::string content(size_t{32} << 20, 'x');
  const MappedFile file(dir.write("large", content));
  EXPECT_EQ(file.bytes(), content);
  const int64_t before = mapped_kb();
  if (before < 32 << 10) GTEST_SKIP() << "this kernel counts no pages of mapped files";
  file.drop(file.bytes().substr(5, size_t{31} << 20));
  EXPECT_LT(mapped_kb(), before - (30 << 10));
  EXPECT_EQ(file.bytes(), content);
}

TEST(ReadFile, ReadsFilesThatSayTheyAreEmpty) {
  EXPECT_NE(read_file("/proc/self/status").find("Pid:"), std::string::npos);
}

TEST(ReadFile, RefusesAFileTooLargeForMemory) {
  const test::TempDir dir;
  std::filesystem::resize_file(dir.write("sparse", ""), uintmax_t{1} << 40);
  const UserError error = test::catch_user_error([&] { read_file(dir.file("sparse")); });
  EXPECT_NE(error.problems()[0].what.find("1099511627776 bytes"), std::string::npos);
}

}  // namespace rematch
