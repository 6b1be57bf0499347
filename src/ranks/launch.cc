#include "ranks/launch.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <string_view>
#include <thread>

#include "base/error.h"
#include "base/interrupt.h"
#include "ranks/store.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kGrace{10};
constexpr std::chrono::milliseconds kPause{50};

struct Child {
  int rank = 0;
  pid_t pid = 0;
};

/// The environment of one rank as "NAME=value".
std::vector<std::string> environment_of(int rank, const LaunchOptions& options, int port,
                                        int restart) {
  std::map<std::string, std::string> values;
  for (char** entry = ::environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const size_t equals = text.find('=');
    if (equals != std::string_view::npos)
      values[std::string(text.substr(0, equals))] = text.substr(equals + 1);
  }
  const std::string size = std::to_string(options.num_ranks), number = std::to_string(rank);
  for (const char* name : {"WORLD_SIZE", "LOCAL_WORLD_SIZE"}) values[name] = size;
  for (const char* name : {"RANK", "LOCAL_RANK"}) values[name] = number;
  values["MASTER_ADDR"] = "127.0.0.1";
  values["MASTER_PORT"] = std::to_string(port);
  values["TORCHELASTIC_RESTART_COUNT"] = std::to_string(restart);
  values["TORCHELASTIC_MAX_RESTARTS"] = std::to_string(options.num_restarts);
  values["TORCHELASTIC_RUN_ID"] = fmt::format("launch-{}", ::getpid());
  values["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  const int num_cores = static_cast<int>(std::thread::hardware_concurrency());
  values.emplace("OMP_NUM_THREADS", std::to_string(std::max(1, num_cores / options.num_ranks)));
  std::vector<std::string> environment;
  for (const auto& [name, value] : values) environment.push_back(name + "=" + value);
  return environment;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// The store's threads live in this process: between fork and exec only what is safe after fork is
// called.
pid_t start(std::vector<std::string> command, std::vector<std::string> environment) {
  const std::vector<char*> arguments = pointers_to(command), variables = pointers_to(environment);
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::setpgid(0, 0);  // the terminal's Ctrl-C reaches the launcher alone, which hands it on once
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (::getppid() != parent) ::_exit(exit_code(ErrorKind::kInterrupted));
    ::execve(arguments[0], arguments.data(), variables.data());
    ::_exit(127);
  }
  if (pid < 0) {
    throw UserError(
        ErrorKind::kEnvironment,
        {.error = "a rank cannot be started",
         .where = command.front(),
         .what = std::strerror(errno),
         .fix = "start fewer ranks (--nproc), or raise the limit of processes (ulimit -u)"});
  }
  ::setpgid(pid, pid);
  return pid;
}

void signal_all(const std::vector<Child>& children, int signal) {
  for (const Child& child : children) ::kill(-child.pid, signal);
}

int code_of(int status) {
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/// Waits for all; the exit code of the first that fails.
int wait_for_all(std::vector<Child> children, const std::function<void(const std::string&)>& say) {
  int failure = 0, last_signal = 0;
  bool is_interrupted = false;
  std::optional<Clock::time_point> since;  // of the failure, then of the last signal
  while (!children.empty()) {
    for (size_t i = 0; i < children.size();) {
      int status = 0;
      if (::waitpid(children[i].pid, &status, WNOHANG) != children[i].pid) {
        ++i;
        continue;
      }
      const Child ended = children[i];
      children.erase(children.begin() + static_cast<std::ptrdiff_t>(i));
      const int code = code_of(status);
      if (code == 0 || failure != 0) continue;
      failure = code;
      since = Clock::now();
      if (!is_interrupted) {
        say(WIFSIGNALED(status) ? fmt::format("rank {} (pid {}) was ended by signal {}", ended.rank,
                                              ended.pid, WTERMSIG(status))
                                : fmt::format("rank {} (pid {}) ended with exit code {}",
                                              ended.rank, ended.pid, code));
      }
    }
    if (!is_interrupted && interrupt_requested()) {
      is_interrupted = true;
      signal_all(children, SIGINT);
    }
    if (since && last_signal != SIGKILL && Clock::now() - *since > kGrace) {
      last_signal = last_signal == 0 ? SIGTERM : SIGKILL;
      signal_all(children, last_signal);
      since = Clock::now();
    }
    if (!children.empty()) std::this_thread::sleep_for(kPause);
  }
  return failure;
}

bool is_worth_a_restart(int code) {
  return code != exit_code(ErrorKind::kConfig) && code != exit_code(ErrorKind::kInterrupted);
}

}  // namespace

int launch_ranks(const LaunchOptions& options) {
  // one that was started to ignore it would never learn how a rank has ended
  ::signal(SIGCHLD, SIG_DFL);
  c10d::TCPStoreOptions store_options;
  store_options.port = 0;
  store_options.isServer = true;
  store_options.waitWorkers = false;
  reserve_descriptors(options.num_ranks);
  c10::intrusive_ptr<c10d::TCPStore> store;
  with_store("the launcher",
             [&] { store = c10::make_intrusive<c10d::TCPStore>("127.0.0.1", store_options); });
  for (int restart = 0;; ++restart) {
    std::vector<std::string> command = options.command;
    if (restart > 0)
      command.insert(command.end(), options.on_restart.begin(), options.on_restart.end());
    std::vector<Child> children;
    for (int rank = 0; rank < options.num_ranks; ++rank) {
      children.push_back(
          {rank, start(command, environment_of(rank, options, store->getPort(), restart))});
    }
    const int code = wait_for_all(std::move(children), options.say);
    if (code == 0 || restart == options.num_restarts || !is_worth_a_restart(code) ||
        interrupt_requested())
      return code;
    options.say(fmt::format("all {} ranks start again: restart {} of {}", options.num_ranks,
                            restart + 1, options.num_restarts));
  }
}

}  // namespace rematch
