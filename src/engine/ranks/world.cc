#include "engine/ranks/world.h"

#include <fmt/core.h>

#include <cstdlib>
#include <limits>
#include <optional>

#include "base/error.h"

namespace rematch {
namespace {

constexpr const char* kLauncher =
    "start with torchrun or srun, which set it; for one process unset WORLD_SIZE";
// SLURM gives no port. A port per job keeps two jobs on a host apart.
constexpr int kFirstSlurmPort = 20000, kNumSlurmPorts = 10000;

[[noreturn]] void refuse(std::string error, const std::string& variable, std::string what,
                         std::string fix) {
  throw environment_error({.error = std::move(error),
                           .where = "environment variable " + variable,
                           .what = std::move(what),
                           .fix = std::move(fix)});
}

std::optional<std::string> read_text(const char* name) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == '\0' ? std::nullopt : std::optional<std::string>(text);
}

std::optional<int> read_integer(const char* name, int least,
                                int most = std::numeric_limits<int>::max()) {
  const std::optional<std::string> text = read_text(name);
  if (!text) return std::nullopt;
  char* rest = nullptr;
  const long value = std::strtol(text->c_str(), &rest, 10);
  if (*rest != '\0' || value < least || value > most)
    refuse(fmt::format("{} is not an integer from {} to {}", name, least, most), name,
           fmt::format("\"{}\"", *text), kLauncher);
  return static_cast<int>(value);
}

template <typename Value>
Value required(const char* name, std::optional<Value> value, const std::string& because,
               const char* fix = kLauncher) {
  if (!value) refuse(fmt::format("{} is missing", name), name, because, fix);
  return *value;
}

World torchrun_world(int size) {
  World world{.size = size};
  const std::string because = fmt::format("WORLD_SIZE={}", size);
  world.rank = required("RANK", read_integer("RANK", 0, size - 1), because);
  world.local_size = read_integer("LOCAL_WORLD_SIZE", 1, size).value_or(1);
  world.local_rank = read_integer("LOCAL_RANK", 0).value_or(0);
  if (world.local_rank >= world.local_size && read_text("LOCAL_WORLD_SIZE")) {
    refuse("LOCAL_RANK and LOCAL_WORLD_SIZE contradict each other", "LOCAL_RANK",
           fmt::format("LOCAL_RANK={}, LOCAL_WORLD_SIZE={}", world.local_rank, world.local_size),
           "start with torchrun");
  }
  world.host = required("MASTER_ADDR", read_text("MASTER_ADDR"), because,
                        "set it to the host of rank 0, and MASTER_PORT to a free port there");
  world.port = required("MASTER_PORT", read_integer("MASTER_PORT", 1, 65535), because);
  world.restart = read_integer("TORCHELASTIC_RESTART_COUNT", 0).value_or(0);
  world.run_id = read_text("TORCHELASTIC_RUN_ID").value_or("none");
  world.store_is_hosted = read_text("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True";
  return world;
}

// `srun --gpus-per-task=1` and `--gpu-bind=single:1` show every task its own GPU.
bool slurm_gives_own_gpu() {
  const std::string resources = read_text("SLURM_TRES_PER_TASK").value_or(""),
                    binding = read_text("SLURM_GPU_BIND").value_or("");
  return read_text("SLURM_GPUS_PER_TASK").value_or("") == "1" || resources.ends_with("gpu:1") ||
         resources.ends_with("gpu=1") || binding.find("single:1") != std::string::npos;
}

World slurm_world(int size) {
  World world{.size = size};
  const std::string because = fmt::format("SLURM_STEP_NUM_TASKS={}", size);
  world.rank = required("SLURM_PROCID", read_integer("SLURM_PROCID", 0, size - 1), because);
  world.local_rank = read_integer("SLURM_LOCALID", 0, size - 1).value_or(0);
  world.sees_own_gpu = slurm_gives_own_gpu();
  // "4(x2),2": without this node's number its count is ambiguous; the local rank and the first
  // count bound it from below.
  world.local_size =
      std::max(world.local_rank + 1,
               std::atoi(read_text("SLURM_STEP_TASKS_PER_NODE").value_or("1").c_str()));
  world.restart = read_integer("SLURM_RESTART_COUNT", 0).value_or(0);
  world.run_id =
      read_text("SLURM_JOB_ID").value_or("none") + "." + read_text("SLURM_STEP_ID").value_or("0");
  world.host =
      read_text("MASTER_ADDR").value_or(first_host(read_text("SLURM_STEP_NODELIST").value_or("")));
  if (world.host.empty())
    refuse("SLURM names no host for rank 0", "SLURM_STEP_NODELIST", because,
           "set MASTER_ADDR to the host of rank 0");
  const int job = std::atoi(read_text("SLURM_JOB_ID").value_or("0").c_str());
  world.port =
      read_integer("MASTER_PORT", 1, 65535).value_or(kFirstSlurmPort + job % kNumSlurmPorts);
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
  if (const std::optional<int> size = read_integer("WORLD_SIZE", 1))
    return *size == 1 ? World{} : torchrun_world(*size);
  // A batch script inside an allocation of several tasks is one process: only `srun` numbers the
  // tasks of a step.
  const std::optional<int> tasks = read_integer("SLURM_STEP_NUM_TASKS", 1);
  return tasks && *tasks > 1 ? slurm_world(*tasks) : World{};
}

}  // namespace rematch
