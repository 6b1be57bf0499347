#include "program/cli/out_of_memory.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

#include "base/host_memory.h"
#include "base/text.h"

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

std::string gib(double bytes) { return fmt::format("{:.2f} GiB", bytes / double{1 << 30}); }

/// The number in "tried to allocate 123 bytes".
std::optional<double> bytes_in(const std::string& message) {
  const size_t found = message.find("tried to allocate ");
  double bytes = 0;
  char unit = 0;  // the b of "bytes"; GPUs write MiB and GiB
  const bool is_read =
      found != message.npos &&
      std::sscanf(message.c_str() + found, "tried to allocate %lf %c", &bytes, &unit) == 2;
  return is_read && unit == 'b' ? std::optional(bytes) : std::nullopt;
}

std::string asked(const std::exception& error) {
  const std::string message = first_line(error.what());
  if (dynamic_cast<const std::bad_alloc*>(&error) != nullptr) return "an allocation failed";
  if (const auto bytes = bytes_in(message))
    return fmt::format("{} were asked for ({:.0f} bytes)", gib(*bytes), *bytes);
  return message;
}

/// The limit of `ulimit -v`; none = no limit.
std::optional<double> address_space_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return static_cast<double>(limit.rlim_cur);
}

std::string there(std::string_view message) {
  // a GPU's own message says it
  if (message.find(" has a total capacity of ") != std::string_view::npos) return "";
  const MemoryBytes memory = host_memory();
  std::string text = memory.total > 0
                         ? fmt::format("; {} of {} were free on this machine (or in its container)",
                                       gib(static_cast<double>(memory.available)),
                                       gib(static_cast<double>(memory.total)))
                         : "; how much there was is unknown";
  if (const auto limit = address_space_limit())
    text += fmt::format("; ulimit -v allows this process {}", gib(*limit));
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
  return std::any_of(std::begin(kMessages), std::end(kMessages),
                     [&](const char* part) { return text.find(part) != std::string_view::npos; });
}

Problem out_of_memory(const std::exception& error, std::string_view phase) {
  return {
      .error = "out of memory",
      .where = phase.empty() ? "this machine" : fmt::format("this machine, in the phase {}", phase),
      .what = asked(error) + there(error.what()),
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
