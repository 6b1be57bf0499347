#include "support/capture.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>

#include "base/file.h"
#include "support/paths.h"

namespace rematch::test {

ProcessResult run_command(const std::string& command, const std::string& input) {
  TempDir directory;
  const std::string in = directory.write("in", input);
  const std::string line = "( " + command + " ) < " + in + " > " + directory.file("out") + " 2> " +
                           directory.file("err");
  const int status = std::system(line.c_str());
  ProcessResult result;
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.out = read_file(directory.file("out"));
  result.err = read_file(directory.file("err"));
  return result;
}

UserError catch_user_error(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error;
  }
  ADD_FAILURE() << "expected a UserError, none was thrown";
  return UserError(ErrorKind::kBug, {.error = "none", .where = "-", .what = "-", .fix = "-"});
}

}  // namespace rematch::test
