#include "base/observe/wandb_follower.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "base/error.h"

extern char** environ;  // NOLINT(readability-redundant-declaration): POSIX declares it nowhere

namespace rematch {
namespace {

// wandb_follower.py, from CMake.
constexpr const char* kScript =
#include "wandb_follower.py.inc"
    ;

UserError not_started(const std::string& what) {
  return environment_error({.error = "python3 cannot be started for wandb",
                            .where = "training.report_to: wandb",
                            .what = what,
                            .fix = "activate a Python environment that has wandb, "
                                   "or remove wandb from training.report_to"});
}

/// Runs wandb_follower.py.
/// @param input   becomes standard input
/// @param output  path that standard output and error are appended to
pid_t start_python(const Strings& arguments, int input, const std::string& output) {
  std::vector<char*> words;
  Strings all{"python3", "-c", kScript};
  all.insert(all.end(), arguments.begin(), arguments.end());
  for (std::string& word : all) words.push_back(word.data());
  words.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, output.c_str(),
                                   O_WRONLY | O_CREAT | O_APPEND, 0644);
  posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  // Its own session keeps Ctrl-C away from it. Ignored signals get their default action back.
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t defaults;
  sigfillset(&defaults);
  posix_spawnattr_setsigdefault(&attributes, &defaults);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int error =
      ::posix_spawnp(&pid, words.front(), &actions, &attributes, words.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) throw not_started(std::strerror(error));
  return pid;
}

}  // namespace

std::optional<std::string> missing_wandb() {
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  const pid_t pid = start_python({}, nothing, "/dev/null");
  ::close(nothing);
  int status = 0;
  while (::waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return std::nullopt;
  return "training.report_to: wandb is ignored: the python3 of the PATH has no wandb (pip install "
         "wandb where you start the training); every step is in logging.jsonl of the run directory";
}

WandbFollower::WandbFollower(const std::string& run_dir, const std::string& run_name)
    : log_path_(run_dir + "/wandb.log") {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) throw not_started(std::strerror(errno));
  end_of_run_ = ends[1];
  struct stat log{};
  ::stat((run_dir + "/logging.jsonl").c_str(), &log);
  try {
    pid_ = start_python({run_dir, std::to_string(log.st_size), run_name}, ends[0], log_path_);
  } catch (...) {
    ::close(ends[0]);
    ::close(ends[1]);
    throw;
  }
  ::close(ends[0]);
}

WandbFollower::~WandbFollower() { ::close(end_of_run_); }

std::optional<std::string> WandbFollower::problem() const {
  int status = 0;
  if (::waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  return fmt::format(
      "wandb lacks the end of this run: its process ended early ({} says why); every step is in "
      "logging.jsonl",
      log_path_);
}

}  // namespace rematch
