// `report_to: wandb` with a stand-in for the package, in a Python that is found on the PATH.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "base/file.h"
#include "e2e/program.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;

// Records its calls.
constexpr const char* kStandIn = R"(
import os
class Run:
    def __init__(self, dir): self.file = open(os.path.join(dir, "told"), "a")
    def log(self, values, step): print(step, values.get("loss"), file=self.file, flush=True)
    def finish(self): print("finished", file=self.file, flush=True)
def init(dir, name, id, resume, config):
    if os.environ.get("BREAKS"): raise RuntimeError("no network")
    run = Run(dir)
    print(name, len(id), config["training"]["max_steps"], file=run.file)
    return run
)";

std::string told(const test::Program& program) {
  const std::string path = program.run_dir() + "/told";
  for (int i = 0; i < 3000; ++i) {
    if (std::filesystem::exists(path) && read_file(path).find("finished") != std::string::npos)
      break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  return std::filesystem::exists(path) ? read_file(path) : "";
}

test::ProcessResult train(const test::Program& program, const std::string& environment) {
  const std::string config = program.config("training: {report_to: wandb, max_steps: 2}\n");
  return test::run_command("cd " + program.dir().path() + " && " + environment + " " +
                           test::binary_path("bin/rematch") + " train " + config);
}

}  // namespace

TEST(Wandb, ReceivesEveryLineFromAProcessThatOutlivesTheRun) {
  test::Program program;
  program.dir().write("site/wandb/__init__.py", kStandIn);
  const test::ProcessResult result = train(program, "PYTHONPATH=" + program.dir().file("site"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  const std::string text = told(program);
  EXPECT_THAT(text, HasSubstr("run 8 2\n1 ")) << read_file(program.run_dir() + "/wandb.log");
  EXPECT_THAT(text, HasSubstr("\n2 "));
  EXPECT_THAT(text, HasSubstr("finished"));
}

TEST(Wandb, TheRunSurvivesItsDeath) {
  test::Program program;
  program.dir().write("site/wandb/__init__.py", kStandIn);
  const test::ProcessResult result =
      train(program, "BREAKS=1 PYTHONPATH=" + program.dir().file("site"));
  ASSERT_EQ(result.exit_code, 0) << result.err;
  EXPECT_TRUE(std::filesystem::exists(program.run_dir() + "/checkpoint-2"));
  const std::string log = program.run_dir() + "/wandb.log";
  for (int i = 0; i < 3000 && (!std::filesystem::exists(log) ||
                               read_file(log).find("no network") == std::string::npos);
       ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_THAT(read_file(log), HasSubstr("no network"));
}

TEST(Wandb, IsIgnoredWithAWarningIfPythonLacksIt) {
  test::Program program;
  // what wandb leaves behind is not a package
  std::filesystem::create_directories(program.dir().file("wandb"));
  program.dir().write("bin/python3", "#!/bin/sh\nexec /usr/bin/python3 -S \"$@\"\n");
  std::filesystem::permissions(program.dir().file("bin/python3"),
                               std::filesystem::perms::owner_all);
  const test::ProcessResult result = train(program, "PATH=" + program.dir().file("bin") + ":$PATH");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_THAT(result.err, HasSubstr("the python3 of the PATH has no wandb"));
  EXPECT_THAT(result.err, HasSubstr("every step is in logging.jsonl"));
  EXPECT_TRUE(std::filesystem::exists(program.run_dir() + "/checkpoint-2"));
}

}  // namespace rematch
