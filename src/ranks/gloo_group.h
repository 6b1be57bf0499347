#pragma once
#include <c10/util/intrusive_ptr.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "ranks/group.h"

namespace c10d {
class Store;
}

namespace rematch {

/// How a group of several ranks talks.
struct GlooOptions {
  /// network interface ("eth0"); empty: the one that this host's name belongs to
  std::string interface_name;
  /// all ranks are on this host: the loopback interface is enough
  bool one_host = false;
  /// of one call: a rank waits for the others' rollouts in it
  std::chrono::seconds timeout{6 * 3600};
  /// of one call in a part of a run, where ranks are never far apart
  std::chrono::seconds patience_of_parts{1800};
  /// Called when a call cannot be finished: what is known of the other ranks, as a sentence, or
  /// nothing. May take seconds.
  std::function<std::string()> explain = {};
  int first_rank = 0;  ///< of a part of a run: its rank 0 in the run
  int run_size = 0;    ///< of a part of a run: the ranks of the run; 0: the group is the run
};

/// Ranks that talk over TCP, by the Gloo of torch's wheel. Host memory only. Returns when all ranks
/// are connected.
/// @param store  shared by the ranks, without the keys of an earlier group
/// @throws UserError (environment) when the interface does not exist, or a rank does not come or
/// cannot be reached
std::unique_ptr<Group> make_gloo_group(c10::intrusive_ptr<c10d::Store> store, int rank, int size,
                                       GlooOptions options);

}  // namespace rematch
