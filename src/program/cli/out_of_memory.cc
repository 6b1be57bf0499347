#include "program/cli/out_of_memory.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/host_memory.h"
#include "base/text.h"
#include "tools/plan/advice.h"

namespace rematch {
namespace {

// Parts of the messages; oneDNN says no more than that a primitive could not be created.
constexpr const char* kMessages[] = {"not enough memory",
                                     "out of memory",
                                     "can't allocate memory",
                                     "Cannot allocate memory",
                                     "could not create a primitive",
                                     "could not create a memory",
                                     "could not execute a primitive"};

/// The limit of `ulimit -v`; none = no limit.
std::optional<int64_t> address_space_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<int64_t>(limit.rlim_cur);
}

std::string there(std::string_view message) {
  // a GPU's own message says it
  if (message.find(" has a total capacity of ") != std::string_view::npos) return "";
  const MemoryBytes memory = host_memory();
  std::string text = memory.total > 0
                         ? fmt::format("; {} of {} were free on this machine (or in its container)",
                                       gib_text(memory.available), gib_text(memory.total))
                         : "; how much there was is unknown";
  if (const auto limit = address_space_limit())
    text += fmt::format("; ulimit -v allows this process {}", gib_text(*limit));
  return text;
}

// Only calls that a signal handler may make.
void end_after_crash(int) {
  constexpr std::string_view kText =
      "error: the program crashed, probably out of memory\n"
      "  where: this machine\n"
      "  what:  `ulimit -v` limits this process, and oneDNN crashes where memory ends\n"
      "  fix:   raise the limit, or lower what `rematch plan` shows\n";
  static_cast<void>(!::write(STDERR_FILENO, kText.data(), kText.size()));
  ::_exit(exit_code(ErrorKind::kEnvironment));
}

}  // namespace

bool is_out_of_memory(const std::exception& error) {
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return true;
  if (const auto* system = dynamic_cast<const std::system_error*>(&error)) {
    // A thread that cannot be started lacks memory for its stack, or the limit of processes is
    // reached.
    if (system->code() == std::errc::not_enough_memory ||
        system->code() == std::errc::resource_unavailable_try_again)
      return true;
  }
  const std::string_view text = error.what();
  return std::ranges::any_of(
      kMessages, [&](const char* part) { return text.find(part) != std::string_view::npos; });
}

Problem out_of_memory(const std::exception& error, std::string_view phase) {
  return {
      .error = "out of memory",
      .where = phase.empty() ? "this machine" : fmt::format("this machine, in the phase {}", phase),
      .what = (dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? "an allocation failed"
                                                                      : first_line(error.what())) +
              there(error.what()),
      .fix =
          "`rematch plan CONFIG` shows what takes how much, and what to lower; or raise the "
          "limit"};
}

void explain_crashes_under_memory_limit() {
  if (!address_space_limit()) return;
  struct sigaction action{};
  action.sa_handler = end_after_crash;
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace rematch
