#include "engine/ranks/meeting.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <unistd.h>

#include <map>
#include <string_view>

#include "base/error.h"
#include "base/host_memory.h"
#include "engine/ranks/gather.h"

namespace rematch {
namespace {

constexpr size_t kMaxProblems = 8;  // hundreds of values may differ

using Pairs = std::vector<std::pair<std::string, std::string>>;

/// The values of one rank.
struct Identity {
  std::string host;
  Pairs values;

  friend void fields(auto& wire, Identity& identity) { wire(identity.host, identity.values); }
};

using Index = std::map<std::string_view, std::string_view>;

Index make_index(const Identity& identity) {
  return {identity.values.begin(), identity.values.end()};
}

std::string_view display_value(const Index& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? "absent" : found->second;
}

/// "config.json" for "config.json: hidden_size".
std::string_view file_in(std::string_view name) { return name.substr(0, name.find(": ")); }

void compare(int rank, const Identity& identity, const Identity& first,
             std::vector<Problem>& problems) {
  const Index here = make_index(identity), there = make_index(first);
  std::map<std::string_view, std::pair<size_t, int>> reported;  // file → its problem, further names
  const auto report = [&](const std::string& name) {
    const auto [known, is_new] = reported.try_emplace(file_in(name), problems.size(), 0);
    if (!is_new) {
      ++known->second.second;
      return;
    }
    problems.push_back(
        {.error = fmt::format("rank {} was started with a different {}", rank, name),
         .where = fmt::format("rank {} on {}", rank, identity.host),
         .what = fmt::format("there: {}; on rank 0, {}: {}", display_value(here, name), first.host,
                             display_value(there, name)),
         .fix = "start every rank with the same program, configuration, model and data"});
  };
  for (const auto& [name, value] : first.values) {
    const auto found = here.find(name);
    if (found == here.end() || found->second != value) report(name);
  }
  for (const auto& [name, value] : identity.values) {
    if (!there.contains(name)) report(name);
  }
  for (const auto& [file, count] : reported) {
    if (count.second > 0)
      problems[count.first].what += fmt::format("; {} more of {} differ", count.second, file);
  }
}

}  // namespace

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

void require_equal(Group& group, const std::vector<std::pair<std::string, std::string>>& identity) {
  if (group.is_alone()) return;
  const std::vector<Identity> all = gather(group, Identity{host_name(), identity});
  std::vector<Problem> problems;
  for (int rank = 1; rank < group.size(); ++rank) compare(rank, all[rank], all.front(), problems);
  if (problems.empty()) return;
  if (problems.size() > kMaxProblems) problems.resize(kMaxProblems);
  throw UserError(ErrorKind::kEnvironment, std::move(problems));
}

}  // namespace rematch
