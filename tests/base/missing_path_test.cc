#include "base/missing_path.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {

TEST(WindowsPath, IsNamedWithWhatToWrite) {
  for (const char* path :
       {R"(C:\data\a.jpg)", "C:/data/a.jpg", R"(./c:\data\a.jpg)", R"(./photos\a.jpg)"})
    EXPECT_NE(windows_path_advice(path).find("this is a path of Windows"), std::string::npos)
        << path;
  for (const char* path : {"photos/a.jpg", "/a:b/c", "https://x/a.jpg", ""})
    EXPECT_EQ(windows_path_advice(path), "") << path;
}

TEST(WindowsPath, IsNamedByEveryErrorOfAMissingFile) {
  const std::string path = R"(C:\data\a.jsonl)";
  EXPECT_NE(std::string(missing_path("image", path, "look").what()).find("/mnt/c/"),
            std::string::npos);
  EXPECT_NE(std::string(test::catch_user_error([&] { read_file(path); }).what()).find("/mnt/c/"),
            std::string::npos);
}

TEST(MissingPath, SaysThatATildeIsNotExpanded) {
  EXPECT_NE(std::string(missing_path("model", "~/models/base", "look").what())
                .find("`~` is expanded by a shell, not in a file"),
            std::string::npos);
}

TEST(MissingPath, NamesWhatIsThereInstead) {
  const test::TempDir dir;
  for (const char* name : {"run/checkpoint-150/a", "data/test.jsonl", "data/notes.txt"})
    dir.write(name, "");
  std::filesystem::create_symlink("gone", dir.file("link"));
  const auto there = [&](const std::string& name) { return existing_names(dir.file(name)); };
  EXPECT_EQ(there("run/checkpoint-149"), "; there is " + dir.file("run/checkpoint-150"));
  EXPECT_EQ(there("rum/checkpoint-150"), "; there is " + dir.file("run"));
  EXPECT_EQ(there("data/validation.jsonl"), "; there is " + dir.file("data/test.jsonl"));
  EXPECT_EQ(there("link"), "; it is a link to gone, which does not exist");
  EXPECT_EQ(there("something/else"), "");
  EXPECT_EQ(existing_names(""), "");
  for (const std::string& text :
       {std::string(missing_path("model", dir.file("run/checkpoint-149"), "").what()),
        std::string(
            test::catch_user_error([&] { read_file(dir.file("data/tests.jsonl")); }).what())})
    EXPECT_NE(text.find("; there is "), std::string::npos) << text;
}

}  // namespace rematch
