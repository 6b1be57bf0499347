#include "ranks/ranks.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <fmt/core.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <exception>
#include <utility>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "ranks/device.h"
#include "ranks/gloo_group.h"
#include "ranks/meeting.h"
#include "ranks/nccl_group.h"
#include "ranks/store.h"
#include "ranks/watchdog.h"

namespace rematch {
namespace {

constexpr std::chrono::seconds kArrival{120}, kFarewell{10};
// others' rollouts are waited for in it; the watchdog ends what is stuck
constexpr std::chrono::seconds kLongestCall{6 * 3600};

std::string environment_text(const char* variable) {
  const char* text = std::getenv(variable);
  return text == nullptr ? "" : text;
}

// The terminal is ours: what torch would log of connections is in the errors that we throw.
void quieten_torch() {
  ::setenv("TORCH_CPP_LOG_LEVEL", "FATAL", /*overwrite=*/0);
  c10::initLogging();
}

std::string problem_of(const std::string& what) {
  return format_problem(
      {.error = "another rank is lost",
       .where = fmt::format("this is pid {} on {}", ::getpid(), host_name()),
       .what = what,
       .fix = "look at that rank's own messages; training.resume_from_checkpoint: latest goes on "
              "from the last checkpoint"});
}

}  // namespace

struct Ranks::Impl {
  Group* connected() const { return is_connected ? group.get() : nullptr; }
  /// A rank that connects waits.
  Watchdog::Progress progress() const {
    const Group* all = connected();
    return {.num_moves = num_interrupt_checks() + (all ? all->num_moves() : 0),
            .is_waiting = all == nullptr || all->is_waiting()};
  }
  void connect(const Options& options);

  World world;
  int num_exceptions = std::uncaught_exceptions();
  c10::intrusive_ptr<c10d::Store> store;
  std::unique_ptr<Watchdog> watchdog;
  std::unique_ptr<Group> group;
  std::atomic<bool> is_connected = false;  ///< `group` is there, also for the watchdog's thread
};

void Ranks::Impl::connect(const Options& options) {
  group = make_gloo_group(store, world.rank, world.size,
                          {.interface_name = environment_text("GLOO_SOCKET_IFNAME"),
                           .one_host = world.local_size == world.size,
                           .timeout = std::max(kLongestCall, options.patience),
                           .patience_of_parts = options.patience,
                           .explain = [this] { return watchdog->explain(); }});
  if (options.backend == DdpBackend::kNccl) {
    const at::Device own = choose_device(options.device);
    require_nccl(own);
    group = make_nccl_group(std::move(group), store, own, options.patience);
  }
  is_connected = true;
  const std::string program = content_hash_of(MappedFile("/proc/self/exe").bytes());
  meet(*group,
       {{"the build of Rematch", fmt::format("{}, libtorch {}", program, REMATCH_TORCH_VERSION)}});
}

Ranks::Ranks(const World& world, Listener listener, Options options)
    : impl_(std::make_unique<Impl>()) {
  impl_->world = world;
  if (world.is_alone()) return;
  quieten_torch();
  Impl* const impl = impl_.get();
  impl->store = open_store(world);
  const std::string where = fmt::format("{}:{} (MASTER_ADDR, MASTER_PORT), rank {} of {}",
                                        world.host, world.port, world.rank, world.size);
  with_store(where, [&] {
    impl->watchdog = std::make_unique<Watchdog>(
        impl->store,
        Watchdog::Options{
            .rank = world.rank,
            .size = world.size,
            .give_up_when_stuck = options.patience,
            .phase = [impl] { return impl->connected() ? impl->group->phase() : "start"; },
            .progress = [impl] { return impl->progress(); },
            .warn = std::move(listener.warn),
            .give_up = [lost = std::move(listener.lost)](
                           const std::string& what) { lost(problem_of(what)); }});
    impl->watchdog->wait_for_first_beats(kArrival);
  });
  impl->watchdog->start();
  try {
    impl->connect(options);
  } catch (...) {
    impl->watchdog->stop(/*failed=*/true);  // the others still wait for its connections
    throw;
  }
}

Ranks::~Ranks() {
  if (!impl_->watchdog) return;
  impl_->watchdog->stop(std::uncaught_exceptions() > impl_->num_exceptions);
  if (impl_->world.rank == 0 && !impl_->world.store_is_hosted)
    impl_->watchdog->wait_for_others(kFarewell);
}

Group& Ranks::group() { return impl_->group ? *impl_->group : alone(); }

void require_alone(const std::string& command) {
  const World world = world_from_environment();
  if (world.is_alone()) return;
  throw UserError(
      ErrorKind::kEnvironment,
      {.error = fmt::format("{} is one process", command),
       .where = "environment variable WORLD_SIZE",
       .what = fmt::format("WORLD_SIZE={}", world.size),
       .fix = "start it without torchrun or srun: only `train` and `eval` run on several ranks"});
}

}  // namespace rematch
