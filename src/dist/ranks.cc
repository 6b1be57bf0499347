#include "dist/ranks.h"

#include <ATen/ATen.h>
#include <c10/util/Logging.h>
#include <fmt/core.h>
#include <torch/csrc/distributed/c10d/Store.hpp>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <utility>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"
#include "dist/gloo_group.h"
#include "dist/meeting.h"
#include "dist/store.h"
#include "dist/watchdog.h"

namespace rematch {
namespace {

constexpr std::chrono::seconds kArrival{120}, kFarewell{10};

std::string text_of(const char* variable) {
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
       .fix = "look at that rank's own messages; training.resume_from_checkpoint: latest goes on from the last checkpoint"});
}

}  // namespace

struct Ranks::Impl {
  World world;
  int num_exceptions = std::uncaught_exceptions();
  c10::intrusive_ptr<c10d::Store> store;
  std::unique_ptr<Watchdog> watchdog;
  std::unique_ptr<Group> group;
};

Ranks::Ranks(const World& world, Listener listener) : impl_(std::make_unique<Impl>()) {
  impl_->world = world;
  if (world.is_alone()) return;
  quieten_torch();
  Impl* const impl = impl_.get();
  impl->store = open_store(world);
  impl->watchdog = std::make_unique<Watchdog>(
      impl->store, Watchdog::Options{.rank = world.rank,
                                     .size = world.size,
                                     .phase = [impl] { return impl->group ? impl->group->phase() : "start"; },
                                     .warn = std::move(listener.warn),
                                     .give_up = [lost = std::move(listener.lost)](const std::string& what) { lost(problem_of(what)); }});
  impl->watchdog->wait_for_first_beats(kArrival);
  impl->group =
      make_gloo_group(impl->store, world.rank, world.size,
                      {.interface_name = text_of("GLOO_SOCKET_IFNAME"), .one_host = world.local_size == world.size, .explain = [impl] {
                         return impl->watchdog->explain();
                       }});
  impl->watchdog->start();
  const std::string program = content_hash_of(MappedFile("/proc/self/exe").bytes());
  meet(*impl->group, {{"the build of Rematch", fmt::format("{}, libtorch {}", program, REMATCH_TORCH_VERSION)}});
}

Ranks::~Ranks() {
  if (!impl_->watchdog) return;
  impl_->watchdog->stop(std::uncaught_exceptions() > impl_->num_exceptions);
  if (impl_->world.rank == 0 && !impl_->world.store_is_hosted) impl_->watchdog->wait_for_others(kFarewell);
}

Group& Ranks::group() { return impl_->group ? *impl_->group : alone(); }

void require_alone(const std::string& command) {
  const World world = world_from_environment();
  if (world.is_alone()) return;
  throw UserError(ErrorKind::kEnvironment, {.error = fmt::format("{} is one process", command),
                                            .where = "environment variable WORLD_SIZE",
                                            .what = fmt::format("WORLD_SIZE={}", world.size),
                                            .fix = "start it without torchrun or srun; only `rematch train` runs on several ranks"});
}

}  // namespace rematch
