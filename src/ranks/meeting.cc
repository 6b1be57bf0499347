#include "ranks/meeting.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <unistd.h>

#include "base/error.h"
#include "ranks/gather.h"

namespace rematch {
namespace {

constexpr size_t kMaxProblems = 8;  // hundreds of values may differ

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// Values that must agree.
struct Identity {
  std::string host;
  Pairs values;

  template <typename Wire>
  friend void fields(Wire& wire, Identity& identity) {
    wire(identity.host, identity.values);
  }
  /// Null when there is none of this name.
  const std::string* find(const std::string& name) const {
    for (const auto& [key, value] : values) {
      if (key == name) return &value;
    }
    return nullptr;
  }
};

std::string shown(const std::string* value) { return value == nullptr ? "absent" : *value; }

void compare(int rank, const Identity& one, const Identity& first, std::vector<Problem>& problems) {
  const auto report = [&](const std::string& name) {
    problems.push_back(
        {.error = fmt::format("rank {} was started with a different {}", rank, name),
         .where = fmt::format("rank {} on {}", rank, one.host),
         .what = fmt::format("there: {}; on rank 0, {}: {}", shown(one.find(name)), first.host,
                             shown(first.find(name))),
         .fix = "start every rank with the same program, configuration, model and data"});
  };
  for (const auto& [name, value] : first.values) {
    const std::string* here = one.find(name);
    if (here == nullptr || *here != value) report(name);
  }
  for (const auto& [name, value] : one.values) {
    if (first.find(name) == nullptr) report(name);
  }
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  ::gethostname(name, sizeof name - 1);
  return name;
}

bool is_loopback(const std::string& host) {
  addrinfo wanted{};
  wanted.ai_family = AF_INET;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), nullptr, &wanted, &found) != 0) return false;
  bool all = found != nullptr;
  for (const addrinfo* entry = found; entry != nullptr; entry = entry->ai_next) {
    const auto* address = reinterpret_cast<const sockaddr_in*>(entry->ai_addr);
    all = all && (ntohl(address->sin_addr.s_addr) >> 24) == 127;
  }
  ::freeaddrinfo(found);
  return all;
}

void meet(Group& group, const std::vector<std::pair<std::string, std::string>>& identity) {
  if (group.is_alone()) return;
  const std::vector<Identity> all = gather(group, Identity{host_name(), identity});
  std::vector<Problem> problems;
  for (int rank = 1; rank < group.size(); ++rank)
    compare(rank, all[static_cast<size_t>(rank)], all.front(), problems);
  if (problems.empty()) return;
  if (problems.size() > kMaxProblems) problems.resize(kMaxProblems);
  throw UserError(ErrorKind::kEnvironment, std::move(problems));
}

}  // namespace rematch
