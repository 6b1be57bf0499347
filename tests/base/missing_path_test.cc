#include "base/missing_path.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "support/capture.h"

namespace rematch {

TEST(WindowsPath, IsNamedWithWhatToWrite) {
  for (const char* path : {R"(C:\data\a.jpg)", "C:/data/a.jpg", R"(./c:\data\a.jpg)"})
    EXPECT_EQ(windows_path_advice(path),
              "this is a path of Windows; write where the file lies here (in WSL: "
              "/mnt/c/data/a.jpg)")
        << path;
  EXPECT_EQ(windows_path_advice(R"(./photos\a.jpg)"),
            "this is a path of Windows; write / between directories: photos/a.jpg");
  for (const char* path : {"photos/a.jpg", "/a:b/c", "https://x/a.jpg", ""})
    EXPECT_EQ(windows_path_advice(path), "") << path;
}

TEST(WindowsPath, IsNamedByEveryErrorOfAMissingFile) {
  const std::string path = R"(C:\data\a.jsonl)";
  EXPECT_NE(std::string(missing_path("image", path, "look").what()).find("/mnt/c/data/a.jsonl"),
            std::string::npos);
  EXPECT_NE(std::string(test::catch_user_error([&] { read_file(path); }).what()).find("/mnt/c/"),
            std::string::npos);
}

TEST(MissingPath, SaysThatATildeIsNotExpanded) {
  EXPECT_NE(std::string(missing_path("model", "~/models/base", "look").what())
                .find("`~` is expanded by a shell, not in a file"),
            std::string::npos);
}

}  // namespace rematch
