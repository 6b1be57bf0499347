#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "engine/ranks/group.h"

namespace c10d {
class Store;
}

namespace rematch {

/// Settings of a Gloo group.
struct GlooOptions {
  /// network interface ("eth0"); empty: the interface of this host's name
  std::string interface_name;
  /// all ranks are on this host: the loopback interface is enough
  bool one_host = false;
  /// of one call; long, because a rank may wait in it for the others' rollouts
  std::chrono::seconds timeout{6 * 3600};
  /// of one call in a subgroup, where ranks are never far apart
  std::chrono::seconds subgroup_timeout{1800};
  /// Called when a call fails: returns a sentence about the other ranks, or nothing. May take
  /// seconds.
  std::function<std::string()> explain = {};
  int first_rank = 0;  ///< rank in the run of this group's rank 0
  int run_size = 0;    ///< ranks of the run, in a subgroup; 0: this group is the whole run
};

/// A group over TCP, by the Gloo in torch's wheel. Host memory only. Returns when all ranks are
/// connected.
/// @param store  shared by the ranks, without the keys of an earlier group
/// @throws UserError (environment) if the interface does not exist, or a rank does not connect or
/// cannot be reached
std::unique_ptr<Group> make_gloo_group(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                       GlooOptions options);

}  // namespace rematch
