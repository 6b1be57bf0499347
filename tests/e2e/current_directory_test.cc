// The directory that a command is started in.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "e2e/program.h"

namespace rematch {

namespace fs = std::filesystem;
using testing::HasSubstr;

TEST(Faults, ACurrentDirectoryThatIsGoneOrTooDeepIsAnError) {
  test::Program program;
  const std::string config = program.config("custom: {val_sample_limit: 1}\n");
  const std::string deep =
      "for i in $(seq 25); do mkdir -p $(printf 'd%.0s' {1..200}); cd d*; done; ";
  for (const std::string& place : {std::string("mkdir gone && cd gone && rmdir ../gone; "), deep}) {
    for (const std::string& command : {"train " + config, "eval " + config, "check " + config,
                                       "data check " + test::Program::golden("val.jsonl"),
                                       std::string("doctor"), std::string("--version")}) {
      const test::ProcessResult result = program.script(place + "$R " + command);
      EXPECT_EQ(result.exit_code, 4) << command << result.err;
      EXPECT_THAT(result.err, HasSubstr("the current directory cannot be read")) << command;
    }
  }
}

TEST(Faults, NothingIsImportedFromTheCurrentDirectory) {
  test::Program program;
  for (const char* module : {"json", "os", "re", "importlib", "torch", "vllm"}) {
    program.dir().write(std::string(module) + ".py", "open('imported', 'w')\n");
  }
  program.run("doctor");
  EXPECT_FALSE(fs::exists(program.dir().file("imported")));
}

}  // namespace rematch
