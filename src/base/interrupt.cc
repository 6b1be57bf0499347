#include "base/interrupt.h"

#include <unistd.h>
#include <csignal>

#include <atomic>
#include <cstdlib>
#include <string_view>

namespace rematch {
namespace {

std::atomic<bool> g_requested{false};
std::atomic<bool> g_save_requested{false};
std::atomic<int64_t> g_num_checks{0};
std::atomic<bool> g_speaks{false};

// Only calls that a signal handler may make.
void on_stop(int) {
  if (g_requested.exchange(true)) _exit(130);
  constexpr std::string_view kText = "\nsaving after this step; once more: stop at once\n";
  if (g_speaks) static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
}

// Terminals may send several. A command that never looks at the flag has nothing to clean up.
void on_hangup(int) {
  g_requested = true;
  if (g_num_checks.load(std::memory_order_relaxed) == 0) _exit(130);
}

void on_save(int) { g_save_requested = true; }

bool is_ignored(int signal) {
  struct sigaction current{};
  return sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_IGN;
}

// No SA_RESTART: a blocking read or wait returns and sees the flag.
void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace

void install_interrupt_handlers() {
  handle(SIGINT, on_stop);
  handle(SIGTERM, on_stop);
  if (!is_ignored(SIGHUP)) handle(SIGHUP, on_hangup);
  handle(SIGXFSZ, SIG_IGN);
}

void install_training_signals() {
  const char* rank = std::getenv("RANK");
  g_speaks = rank == nullptr || std::string_view(rank) == "0";
  handle(SIGHUP, SIG_IGN);
  handle(SIGPIPE, SIG_IGN);
  handle(SIGXCPU, on_stop);
  if (!is_ignored(SIGUSR1)) handle(SIGUSR1, on_save);
  if (!is_ignored(SIGUSR2)) handle(SIGUSR2, on_stop);
}

bool interrupt_requested() { return g_requested.load(std::memory_order_relaxed); }
void set_interrupt_requested(bool requested) { g_requested = requested; }
bool take_save_request() { return g_save_requested.exchange(false); }
void count_interrupt_check() { g_num_checks.fetch_add(1, std::memory_order_relaxed); }
void throw_if_interrupted() {
  count_interrupt_check();
  if (interrupt_requested()) throw Interrupted{};
}
int64_t num_interrupt_checks() { return g_num_checks.load(std::memory_order_relaxed); }

}  // namespace rematch
