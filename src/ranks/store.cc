#include "ranks/store.h"

#include <fmt/core.h>
#include <sys/resource.h>

#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

#include "base/error.h"

namespace rematch {

void with_store(const std::string& where, const std::function<void()>& part) {
  try {
    part();
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw UserError(
        ErrorKind::kEnvironment,
        {.error = "the ranks' store cannot be used",
         .where = where,
         .what = text.substr(0, text.find('\n')),
         .fix =
             "look at the messages of the process that hosts it, which is the launcher or rank 0"});
  }
}

// With too few, torch retries for minutes and then tells that a peer has reset the connection.
void reserve_descriptors(int num_ranks) {
  const rlim_t needed = 16 + 4 * static_cast<rlim_t>(num_ranks);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed) return;
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_cur == needed && ::setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  throw UserError(
      ErrorKind::kEnvironment,
      {.error = "too few files may be open for the ranks' store",
       .where = "the process that hosts it: the launcher or rank 0",
       .what = fmt::format("limit {}, needed {} for {} ranks", limit.rlim_max, needed, num_ranks),
       .fix = "raise the limit (ulimit -n), or start fewer ranks"});
}

c10::intrusive_ptr<c10d::Store> open_store(const World& world, std::chrono::seconds patience) {
  const bool hosts = world.rank == 0 && !world.store_is_hosted;
  if (hosts) reserve_descriptors(world.size);
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(world.port);
  options.isServer = hosts;
  options.waitWorkers = false;
  options.timeout = patience;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(world.host, options);
    return c10::make_intrusive<c10d::PrefixStore>(
        fmt::format("rematch/{}/{}/{}", world.run_id, world.restart, world.size), store);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw UserError(
        ErrorKind::kEnvironment,
        {.error = hosts ? "rank 0 cannot listen for the other ranks"
                        : fmt::format("rank 0 did not come within {} s", 2 * patience.count()),
         .where = fmt::format("{}:{} (MASTER_ADDR, MASTER_PORT), rank {} of {}", world.host,
                              world.port, world.rank, world.size),
         .what = text.substr(0, text.find('\n')),
         .fix = hosts ? "set MASTER_PORT to a port that no other program uses"
                      : "start all ranks within half a minute, with MASTER_ADDR and MASTER_PORT of "
                        "rank 0, reachable from here"});
  }
}

}  // namespace rematch
