#include "program/cli/out_of_memory.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
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
std::optional<double> bytes_in(std::string_view message) {
  constexpr std::string_view kBefore = "tried to allocate ";
  const size_t found = message.find(kBefore);
  if (found == std::string_view::npos) return std::nullopt;
  message.remove_prefix(found + kBefore.size());
  double bytes = 0;
  const auto [end, error] = std::from_chars(message.data(), message.data() + message.size(), bytes);
  if (error != std::errc() ||
      !std::string_view(end, message.data() + message.size() - end).starts_with(" bytes"))
    return std::nullopt;
  return bytes;
}

/// A phase of training, and how to make it take less.
struct PhaseAdvice {
  std::string_view phase;
  const char* during;
  const char* lower;
};

constexpr const char* kLowerRollouts =
    "lower rollout_generate_batch_size (hf), native.max_num_seqs, native.kv_cache_gib or "
    "max_new_tokens, or set offload.enabled: true";

constexpr PhaseAdvice kPhases[] = {
    {"start", "before the first step: model, optimizer and engine",
     "set model.torch_dtype: bfloat16 or tuner.train_type: lora, or lower native.kv_cache_gib or "
     "vllm.gpu_memory_utilization"},
    {"rollout", "in a rollout", kLowerRollouts},
    {"update", "in forward, backward or update",
     "lower training.per_device_train_batch_size or global_max_length, or set "
     "training.gradient_checkpointing: true or "
     "tuner.train_type: lora"},
    {"evaluate", "in an evaluation", kLowerRollouts},
};

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
  const auto* known = std::find_if(std::begin(kPhases), std::end(kPhases),
                                   [&](const PhaseAdvice& one) { return one.phase == phase; });
  const bool is_known = known != std::end(kPhases);
  return {.error = "out of memory",
          .where = is_known ? fmt::format("this machine, {}", known->during) : "this machine",
          .what = asked(error) + there(error.what()),
          .fix = fmt::format("{}; `rematch plan` shows what takes how much; or raise the limit",
                             is_known ? known->lower
                                      : "lower training.per_device_train_batch_size, "
                                        "global_max_length, rollout_generate_batch_size (hf), "
                                        "native.max_num_seqs or native.kv_cache_gib, or set "
                                        "training.gradient_checkpointing: true")};
}

void explain_crashes_under_memory_limit() {
  if (!address_space_limit()) return;
  struct sigaction action{};
  action.sa_handler = end_after_crash;
  ::sigaction(SIGSEGV, &action, nullptr);
}

}  // namespace rematch
