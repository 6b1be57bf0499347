#include "ranks/world.h"

#include <fmt/core.h>

#include <cstdlib>
#include <limits>
#include <optional>

#include "base/error.h"

namespace rematch {
namespace {

// SLURM names no port; one of a job's own keeps two jobs on a host apart.
constexpr int kFirstSlurmPort = 20000, kNumSlurmPorts = 10000;

[[noreturn]] void refuse(std::string error, const std::string& variable, std::string what,
                         std::string fix) {
  throw UserError(ErrorKind::kEnvironment, {.error = std::move(error),
                                            .where = "environment variable " + variable,
                                            .what = std::move(what),
                                            .fix = std::move(fix)});
}

std::optional<std::string> text_of(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? std::nullopt : std::optional<std::string>(text);
}

std::optional<int> integer_of(const char* name, int least,
                              int end = std::numeric_limits<int>::max()) {
  const std::optional<std::string> text = text_of(name);
  if (!text) return std::nullopt;
  char* rest = nullptr;
  const long value = std::strtol(text->c_str(), &rest, 10);
  if (*rest != '\0') {
    refuse(fmt::format("{} is not {}", name, least == 1 ? "a positive integer" : "an integer"),
           name, fmt::format("\"{}\"", *text),
           "unset it, or start with torchrun or srun, which set it");
  }
  if (value < least || value >= end) {
    refuse(fmt::format("{} is {}", name,
                       least == 1 && value < 1 ? "not a positive integer" : "out of range"),
           name,
           end == std::numeric_limits<int>::max()
               ? fmt::format("\"{}\"", value)
               : fmt::format("{}, expected {} to {}", value, least, end - 1),
           "unset it, or start with torchrun or srun, which set it");
  }
  return static_cast<int>(value);
}

int required(const char* name, int least, int end, const std::string& because) {
  const std::optional<int> value = integer_of(name, least, end);
  if (!value)
    refuse(fmt::format("{} is missing", name), name, because,
           "start with torchrun or srun, which set it");
  return *value;
}

World of_torchrun(int size) {
  World world{.size = size};
  const std::string because = fmt::format("WORLD_SIZE={}", size);
  world.rank = required("RANK", 0, size, because);
  world.local_size = integer_of("LOCAL_WORLD_SIZE", 1, size + 1).value_or(1);
  world.local_rank = integer_of("LOCAL_RANK", 0).value_or(0);
  if (world.local_rank >= world.local_size && text_of("LOCAL_WORLD_SIZE")) {
    refuse("LOCAL_RANK and LOCAL_WORLD_SIZE contradict each other", "LOCAL_RANK",
           fmt::format("LOCAL_RANK={}, LOCAL_WORLD_SIZE={}", world.local_rank, world.local_size),
           "start with torchrun");
  }
  const std::optional<std::string> host = text_of("MASTER_ADDR");
  if (!host)
    refuse("MASTER_ADDR is missing", "MASTER_ADDR", because,
           "set it to the host of rank 0, and MASTER_PORT to a free port there");
  world.host = *host;
  world.port = required("MASTER_PORT", 1, 65536, because);
  world.restart = integer_of("TORCHELASTIC_RESTART_COUNT", 0).value_or(0);
  world.run_id = text_of("TORCHELASTIC_RUN_ID").value_or("none");
  world.store_is_hosted = text_of("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  return world;
}

World of_slurm(int size) {
  World world{.size = size};
  const std::string because = fmt::format("SLURM_STEP_NUM_TASKS={}", size);
  world.rank = required("SLURM_PROCID", 0, size, because);
  world.local_rank = integer_of("SLURM_LOCALID", 0, size).value_or(0);
  // "4(x2),2": this host's count is not told apart without its node's number; its own local rank
  // and the first count bound it.
  world.local_size = std::max(
      world.local_rank + 1, std::atoi(text_of("SLURM_STEP_TASKS_PER_NODE").value_or("1").c_str()));
  world.restart = integer_of("SLURM_RESTART_COUNT", 0).value_or(0);
  world.run_id =
      text_of("SLURM_JOB_ID").value_or("none") + "." + text_of("SLURM_STEP_ID").value_or("0");
  world.host =
      text_of("MASTER_ADDR").value_or(first_host(text_of("SLURM_STEP_NODELIST").value_or("")));
  if (world.host.empty())
    refuse("SLURM names no host for rank 0", "SLURM_STEP_NODELIST", because,
           "set MASTER_ADDR to the host of rank 0");
  const int job = std::atoi(text_of("SLURM_JOB_ID").value_or("0").c_str());
  world.port = integer_of("MASTER_PORT", 1, 65536).value_or(kFirstSlurmPort + job % kNumSlurmPorts);
  return world;
}

}  // namespace

std::string first_host(const std::string& node_list) {
  const size_t end = node_list.find_first_of(",[");
  if (end == std::string::npos || node_list[end] == ',') return node_list.substr(0, end);
  const size_t number_end = node_list.find_first_of("-,]", end + 1);
  return node_list.substr(0, end) + node_list.substr(end + 1, number_end - end - 1);
}

World world_from_environment() {
  if (const std::optional<int> size = integer_of("WORLD_SIZE", 1))
    return *size == 1 ? World{} : of_torchrun(*size);
  // A batch script inside an allocation of several tasks is one process: only `srun` numbers the
  // tasks of a step.
  const std::optional<int> tasks = integer_of("SLURM_STEP_NUM_TASKS", 1);
  return tasks && *tasks > 1 ? of_slurm(*tasks) : World{};
}

}  // namespace rematch
