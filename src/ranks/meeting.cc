#include "ranks/meeting.h"

#include <arpa/inet.h>
#include <fmt/core.h>
#include <netdb.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace rematch {
namespace {

constexpr size_t kMaxProblems = 8;  // of a stranger hundreds of values may differ

const Json* find(const Json& pairs, const Json& name) {
  for (const Json& pair : pairs) {
    if (pair[0] == name) return &pair[1];
  }
  return nullptr;
}

std::string shown(const Json* value) {
  return value == nullptr ? "absent" : value->get<std::string>();
}

void compare(int rank, const Json& one, const Json& first, std::vector<Problem>& problems) {
  const auto differs = [&](const Json& name) {
    problems.push_back(
        {.error = fmt::format("rank {} is a stranger: {} differs", rank, name.get<std::string>()),
         .where = fmt::format("rank {} on {}", rank, one["host"].get<std::string>()),
         .what = fmt::format("there: {}; on rank 0, {}: {}", shown(find(one["pairs"], name)),
                             first["host"].get<std::string>(), shown(find(first["pairs"], name))),
         .fix = "start every rank with the same program, configuration, model and data"});
  };
  for (const Json& pair : first["pairs"]) {
    const Json* here = find(one["pairs"], pair[0]);
    if (here == nullptr || *here != pair[1]) differs(pair[0]);
  }
  for (const Json& pair : one["pairs"]) {
    if (find(first["pairs"], pair[0]) == nullptr) differs(pair[0]);
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
  Json mine = {{"host", host_name()}, {"pairs", Json::array()}};
  for (const auto& [name, value] : identity) mine["pairs"].push_back({name, value});
  const std::vector<std::string> texts =
      group.all_gather(mine.dump(-1, ' ', false, Json::error_handler_t::replace));
  std::vector<Problem> problems;
  const Json first = Json::parse(texts.front());
  for (int rank = 1; rank < group.size(); ++rank)
    compare(rank, Json::parse(texts[static_cast<size_t>(rank)]), first, problems);
  if (problems.empty()) return;
  if (problems.size() > kMaxProblems) problems.resize(kMaxProblems);
  throw UserError(ErrorKind::kEnvironment, std::move(problems));
}

}  // namespace rematch
