#include "engine/rollout/vllm/plugin_loader.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "engine/rollout/engine_factory.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

Problem refusal_of_loader(const std::string& python) {
  const UserError error = test::catch_user_error([&] {
    check_backend_available("vllm", {{.python = python, .tensor_parallel_size = 1},
                                     1,
                                     test::source_path("tests/shapes/model")});
  });
  EXPECT_EQ(exit_code(error.kind()), 4);
  EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
  return error.problems().front();
}

/// An interpreter that sees packages of the test's making first.
class FakeEnvironment {
 public:
  void add(const std::string& package, const std::string& file, const std::string& text) {
    dir_.write(fmt::format("packages/{}/__init__.py", package), "");
    dir_.write(fmt::format("packages/{}/{}", package, file), text);
  }
  std::string python() const {
    const std::string path = dir_.write(
        "python", fmt::format("#!/bin/sh\nPYTHONPATH={} exec /usr/bin/env python3 -S \"$@\"\n",
                              dir_.file("packages")));
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
    return path;
  }

 private:
  test::TempDir dir_;
};

}  // namespace

TEST(VllmInterpreter, RefusesOneThatIsNotThere) {
  const Problem problem = refusal_of_loader("/nowhere/python3");
  EXPECT_EQ(problem.where, "custom.extra.rollout_matching.vllm.python");
  EXPECT_NE(problem.what.find("/nowhere/python3"), std::string::npos);
  EXPECT_NE(problem.fix.find("scripts/setup-vllm"), std::string::npos);
}

TEST(VllmInterpreter, RefusesAProgramThatIsNoPython) {
  EXPECT_NE(refusal_of_loader("/bin/false").error.find("no Python interpreter"), std::string::npos);
}

TEST(VllmInterpreter, RefusesAnEnvironmentWithoutVllm) {
  FakeEnvironment environment;
  environment.add("torch", "version.py",
                  fmt::format("__version__ = '{}'\n", REMATCH_TORCH_VERSION));
  const Problem problem = refusal_of_loader(environment.python());
  EXPECT_EQ(problem.error, "vLLM is not installed");
  EXPECT_NE(problem.what.find("no module vllm"), std::string::npos);
}

TEST(VllmInterpreter, RefusesAnotherTorch) {
  FakeEnvironment environment;
  environment.add("vllm", "_version.py", "__version__ = version = '0.32.0'\n");
  environment.add("torch", "version.py",
                  "from typing import Optional\n__version__ = '1.2.3+cu42'\n");
  const Problem problem = refusal_of_loader(environment.python());
  EXPECT_NE(problem.error.find("torch"), std::string::npos);
  EXPECT_NE(problem.what.find("1.2.3+cu42"), std::string::npos);
  EXPECT_NE(problem.what.find(REMATCH_TORCH_VERSION), std::string::npos);
}

TEST(VllmInterpreter, AcceptsAnotherBuildOfTheSameRelease) {
  const std::string release =
      std::string(REMATCH_TORCH_VERSION).substr(0, std::string(REMATCH_TORCH_VERSION).find('+'));
  for (const std::string build : {"", "+cpu", "+cu130"}) {
    EXPECT_NO_THROW(check_interpreter({.command = "python3",
                                       .executable = "/usr/bin/python3",
                                       .libpython = "libpython3.so",
                                       .torch_version = release + build,
                                       .vllm_version = "0.32.0"}))
        << build;
  }
  EXPECT_THROW(check_interpreter({.command = "python3",
                                  .executable = "/usr/bin/python3",
                                  .libpython = "libpython3.so",
                                  .torch_version = release + "1+cpu",
                                  .vllm_version = "0.32.0"}),
               UserError);
}

TEST(VllmInterpreter, ReadsVersionsWithoutImportingAnything) {
  FakeEnvironment environment;
  environment.add("vllm", "_version.py",
                  "__version__ = version = '0.32.0'\nraise SystemExit('imported')\n");
  environment.add(
      "torch", "version.py",
      "__all__ = ['__version__']\n__version__: str = \"2.0.0\"\nraise SystemExit('imported')\n");
  const Interpreter found = probe_interpreter(environment.python());
  EXPECT_EQ(found.problem, "");
  EXPECT_EQ(found.vllm_version, "0.32.0");
  EXPECT_EQ(found.torch_version, "2.0.0");
  EXPECT_FALSE(found.python_version.empty());
}

TEST(VllmInterpreter, RefusesAnImportThatFails) {
  if (plugin_path().empty()) GTEST_SKIP() << "librematch_vllm.so is not built: no Python.h";
  Interpreter lacking = probe_interpreter("python3");
  if (lacking.libpython.empty() || !lacking.vllm_version.empty())
    GTEST_SKIP() << "python3 on PATH has vLLM, or no shared library";
  const UserError error = test::catch_user_error([&] { open_plugin(lacking); });
  EXPECT_EQ(exit_code(error.kind()), 4);
  // Which of the two it lacks comes first depends on the machine.
  const Problem& problem = error.problems().front();
  EXPECT_TRUE(problem.what.find("ModuleNotFoundError") != std::string::npos ||
              problem.error.find("Python") != std::string::npos)
      << error.what();
  EXPECT_NE(problem.fix.find("rollout_backend: hf"), std::string::npos);
}

}  // namespace rematch
