#include "engine/ranks/ranks.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <fmt/core.h>
#include <unistd.h>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/interrupt.h"
#include "engine/ranks/ddp_choice.h"
#include "engine/ranks/device.h"
#include "engine/ranks/gloo_group.h"
#include "engine/ranks/meeting.h"
#include "engine/ranks/nccl_group.h"
#include "engine/ranks/store.h"

namespace rematch {
namespace {

constexpr std::chrono::seconds kArrival{120}, kFarewell{10};
// Long, because a rank may wait for the others' rollouts; the watchdog finds ranks that are stuck.
constexpr std::chrono::seconds kLongestCall{6 * 3600};

std::string environment_text(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

// Our exceptions report what torch would log about connections.
void quiet_torch() {
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
}

/// Longer than it takes open_store() to find that no process listens.
std::chrono::seconds store_patience(std::chrono::seconds patience) {
  return std::clamp(patience, std::chrono::seconds(2), std::chrono::seconds(30)) +
         std::chrono::seconds(10);
}

std::string store_host(const World& world) {
  return fmt::format("{}, which hosts the ranks' store at {}:{}",
                     world.store_is_hosted ? "torchrun" : "rank 0", world.host, world.port);
}

std::string lost_problem(const std::string& what) {
  return format_problem(
      {.error = "another rank is lost",
       .where = fmt::format("this is pid {} on {}", ::getpid(), host_name()),
       .what = what,
       .fix = "look at that rank's own messages; training.resume_from_checkpoint: latest continues "
              "from the last checkpoint"});
}

}  // namespace

Ranks::Ranks(const World& world, const Options& options)
    : world_(world), num_exceptions_(std::uncaught_exceptions()) {
  if (world.is_alone()) return;
  quiet_torch();
  const auto start = std::chrono::steady_clock::now();
  const auto give_up = [lost = options.lost](const std::string& what) { lost(lost_problem(what)); };
  guard_ = std::make_unique<StoreGuard>(
      StoreGuard::Options{.host = store_host(world),
                          .limit = static_cast<int>(store_patience(options.patience).count()),
                          .give_up = give_up});
  store_ = open_store(world, options.patience);
  with_store(world, [&] {
    watchdog_ = std::make_unique<Watchdog>(
        store_, Watchdog::Options{.rank = world.rank,
                                  .size = world.size,
                                  .give_up_when_stuck = static_cast<int>(options.patience.count()),
                                  .progress = [this] { return progress(); },
                                  .warn = options.warn,
                                  .give_up = give_up,
                                  .guard = guard_.get()});
  });
  try {
    const auto left = std::chrono::ceil<std::chrono::seconds>(start + options.patience -
                                                              std::chrono::steady_clock::now());
    with_store(world,
               [&] { watchdog_->start(std::clamp(left, std::chrono::seconds(0), kArrival)); });
    connect(options);
  } catch (...) {
    watchdog_->stop(/*failed=*/true);  // the others still wait for this rank to connect
    throw;
  }
}

Ranks::~Ranks() {
  if (!watchdog_) return;
  watchdog_->stop(std::uncaught_exceptions() > num_exceptions_,
                  world_.hosts_store() ? kFarewell : std::chrono::seconds(0));
  guard_.reset();
}

Watchdog::Progress Ranks::progress() const {
  if (!is_connected_) return {.num_moves = num_interrupt_checks(), .is_waiting = true};
  return {.phase = group_->phase(),
          .num_moves = num_interrupt_checks() + group_->num_moves(),
          .is_waiting = group_->is_waiting()};
}

void Ranks::connect(const Options& options) {
  group_ = make_gloo_group(store_, world_.rank, world_.size,
                           {.interface_name = environment_text("GLOO_SOCKET_IFNAME"),
                            .one_host = world_.local_size == world_.size,
                            .timeout = std::max(kLongestCall, options.patience),
                            .subgroup_timeout = options.patience,
                            .explain = [this] { return watchdog_->explain(); }});
  const at::Device own = choose_device(options.device);
  backend_ = choose_ddp_backend(
      options.backend, group_->all_gather(gpu_place(
                           own, host_name(),
                           world_.sees_own_gpu ? fmt::format("task {}", world_.local_rank)
                                               : environment_text("CUDA_VISIBLE_DEVICES"))));
  if (backend_ == DdpBackend::kNccl) {
    require_nccl(own);
    use_device(own);
    group_ = make_nccl_group(std::move(group_), store_, own, options.patience);
  }
  is_connected_ = true;
  const std::string program = content_hash_of(MappedFile("/proc/self/exe").bytes());
  require_equal(*group_, {{"the build of Rematch",
                           fmt::format("{}, libtorch {}", program, REMATCH_TORCH_VERSION)}});
}

void require_alone(const std::string& command) {
  const World world = world_from_environment();
  if (world.is_alone()) return;
  throw environment_error(
      {.error = fmt::format("{} runs as a single process", command),
       .where = "environment variable WORLD_SIZE",
       .what = fmt::format("WORLD_SIZE={}", world.size),
       .fix = "start it without torchrun or srun: only `train` and `eval` run on several ranks"});
}

}  // namespace rematch
