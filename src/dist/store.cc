#include "dist/store.h"

#include <fmt/core.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>

#include <cstdint>
#include <string>

#include "base/error.h"

namespace rematch {

c10::intrusive_ptr<c10d::Store> open_store(const World& world, std::chrono::seconds patience) {
  const bool hosts = world.rank == 0 && !world.store_is_hosted;
  c10d::TCPStoreOptions options;
  options.port = static_cast<std::uint16_t>(world.port);
  options.isServer = hosts;
  options.waitWorkers = false;
  options.timeout = patience;
  try {
    auto store = c10::make_intrusive<c10d::TCPStore>(world.host, options);
    return c10::make_intrusive<c10d::PrefixStore>(fmt::format("rematch/{}/{}/{}", world.run_id, world.restart, world.size), store);
  } catch (const c10::Error& error) {
    const std::string text = error.what_without_backtrace();
    throw UserError(
        ErrorKind::kEnvironment,
        {.error = hosts ? "rank 0 cannot listen for the other ranks" : fmt::format("rank 0 did not come within {} s", 2 * patience.count()),
         .where = fmt::format("{}:{} (MASTER_ADDR, MASTER_PORT), rank {} of {}", world.host, world.port, world.rank, world.size),
         .what = text.substr(0, text.find('\n')),
         .fix = hosts ? "set MASTER_PORT to a port that no other program uses"
                      : "start all ranks within half a minute, with MASTER_ADDR and MASTER_PORT of rank 0, reachable from here"});
  }
}

}  // namespace rematch
