#include "engine/ranks/store.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

// torch tries twice to reach rank 0.
constexpr std::chrono::seconds kShortestTry{1}, kLongestTry{15};

[[noreturn]] void refuse_store(const World& world, const c10::Error& error, std::string headline,
                               std::string fix) {
  throw environment_error({.error = std::move(headline),
                           .where = fmt::format("{}:{} (MASTER_ADDR, MASTER_PORT), rank {} of {}",
                                                world.host, world.port, world.rank, world.size),
                           .what = first_line(error.what()),
                           .fix = std::move(fix)});
}

// With too few descriptors, torch retries for minutes and then reports a connection reset.
void reserve_descriptors(int num_ranks) {
  const rlim_t needed = 16 + 4 * static_cast<rlim_t>(num_ranks);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_cur == needed && ::setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  throw environment_error(
      {.error = "the limit of open files is too low for the ranks' store",
       .where = "rank 0, which hosts it",
       .what = fmt::format("limit {}, needed {} for {} ranks", limit.rlim_max, needed, num_ranks),
       .fix = "raise the limit (ulimit -n), or start fewer ranks"});
}

}  // namespace

void with_store(const World& world, const std::function<void()>& body) {
  try {
    body();
  } catch (const c10::Error& error) {
    refuse_store(world, error, "the ranks' store cannot be used",
                 "look at the messages of the process that hosts it, which is torchrun or rank 0");
  }
}

c10::intrusive_ptr<c10d::Store> open_store(const World& world, std::chrono::seconds patience) {
  const bool hosts = world.hosts_store();
  if (hosts) reserve_descriptors(world.size);
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(world.port);
  options.isServer = hosts;
  options.waitWorkers = false;
  options.timeout = std::clamp(patience / 2, kShortestTry, kLongestTry);
  try {
    return c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("rematch/{}/{}/{}", world.run_id, world.restart, world.size),
        c10::make_intrusive<c10d::TCPStore>(world.host, options));
  } catch (const c10::Error& error) {
    if (hosts)
      refuse_store(world, error, "rank 0 cannot listen for the other ranks",
                   "set MASTER_PORT to a port that no other program uses");
    const auto waited = std::chrono::duration_cast<std::chrono::seconds>(2 * options.timeout);
    refuse_store(
        world, error, fmt::format("rank 0 did not answer within {} s", waited.count()),
        "look at rank 0's own messages; start all ranks within half a minute, with MASTER_ADDR "
        "and MASTER_PORT of rank 0, reachable from here");
  }
}

}  // namespace rematch
