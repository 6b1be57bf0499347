#pragma once
#include <functional>
#include <string>

#include "base/error.h"

namespace rematch::test {

/// Output and exit status of a finished child process.
struct ProcessResult {
  int exit_code = -1;
  std::string out;
  std::string err;
};

/// Runs a shell command with `input` on its standard input.
ProcessResult run_command(const std::string& command, const std::string& input = "");

/// Runs `action` and returns the UserError it throws; fails the test (and returns a dummy) when it
/// throws nothing.
UserError catch_user_error(const std::function<void()>& action);

}  // namespace rematch::test
