#include "base/interrupt.h"

#include <csignal>
#include <unistd.h>

#include <atomic>

namespace rematch {
namespace {

std::atomic<bool> g_requested{false};

void on_signal(int) {
  if (g_requested.exchange(true)) _exit(130);
}

}  // namespace

void install_interrupt_handlers() {
  struct sigaction action{};
  action.sa_handler = on_signal;
  sigemptyset(&action.sa_mask);
  // No SA_RESTART: a blocking read or wait returns and sees the flag.
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
}

bool interrupt_requested() { return g_requested.load(std::memory_order_relaxed); }
void set_interrupt_requested(bool requested) { g_requested = requested; }
void throw_if_interrupted() {
  if (interrupt_requested()) throw Interrupted{};
}

}  // namespace rematch
