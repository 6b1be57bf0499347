#include "engine/ranks/phase.h"

#include <c10/util/Exception.h>
#include <fmt/core.h>

#include <optional>
#include <utility>

#include "base/interrupt.h"
#include "engine/ranks/gather.h"

namespace rematch {
namespace {

/// The failure of a rank, as the others see it.
struct Report {
  bool keeps_state = false;
  bool is_interrupt = false;
  bool is_from_peer = false;  ///< reported by another rank
  ErrorKind kind = ErrorKind::kBug;
  std::vector<Problem> problems;
  bool has_failed = true;

  friend void fields(auto& wire, Report& report) {
    wire(report.keeps_state, report.is_interrupt, report.is_from_peer, report.kind, report.problems,
         report.has_failed);
  }
};

Report bug(std::string what) { return {.problems = {bug_problem(std::move(what))}}; }

Report make_report(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Interrupted&) {
    return {.keeps_state = true, .is_interrupt = true, .kind = ErrorKind::kInterrupted};
  } catch (const UserError& error) {
    return {.keeps_state = dynamic_cast<const KeepsState*>(&error) != nullptr,
            .is_from_peer = dynamic_cast<const PeerFailure*>(&error) != nullptr,
            .kind = error.kind(),
            .problems = error.problems()};
  } catch (const c10::Error& error) {
    return bug(error.what_without_backtrace());
  } catch (const std::exception& error) {
    const std::optional<Problem> path = path_problem(error);
    return path ? Report{.kind = ErrorKind::kEnvironment, .problems = {*path}} : bug(error.what());
  } catch (...) {
    return bug("an unknown exception");
  }
}

bool is_worse(const Report& report, const Report& other) {
  if (report.is_from_peer != other.is_from_peer) return other.is_from_peer;
  return other.keeps_state && !report.keeps_state;
}

[[noreturn]] void throw_peer_failure(int rank, Report report) {
  if (report.is_interrupt) throw Interrupted{};
  for (Problem& problem : report.problems)
    problem.error = fmt::format("rank {}: {}", rank, problem.error);
  if (report.keeps_state) throw KeepingPeerFailure(report.kind, std::move(report.problems));
  throw PeerFailure(report.kind, std::move(report.problems));
}

/// The failure that all ranks agree on, and its rank.
/// @param reports  by rank
std::pair<int, Report> select_worst(std::vector<Report> reports) {
  std::optional<std::pair<int, Report>> worst;
  for (int rank = 0; rank < static_cast<int>(reports.size()); ++rank) {
    Report& report = reports[rank];
    if (!report.has_failed) continue;
    if (!worst || is_worse(report, worst->second)) worst = {rank, std::move(report)};
  }
  REMATCH_CHECK(worst.has_value(), "a phase failed on no rank");
  return *std::move(worst);
}

/// Throws the failure that all ranks agree on.
/// @param mine  of this rank; null if it did not fail
[[noreturn]] void throw_failure(Group& group, const std::exception_ptr& mine) {
  const Report own = mine ? make_report(mine) : Report{.has_failed = false};
  auto [rank, worst] = select_worst(gather(group, own));
  // A rank throws its own exception, unless it would then save a state that the others do not.
  if (mine && !is_worse(worst, own) && own.keeps_state == worst.keeps_state)
    std::rethrow_exception(mine);
  throw_peer_failure(group.run_rank(rank), std::move(worst));
}

}  // namespace

/// While it exists, the group's synchronous calls check for failed ranks.
class PhaseScope {
 public:
  explicit PhaseScope(Group& group) : group_(group) { group_.is_in_phase_ = true; }
  ~PhaseScope() { group_.is_in_phase_ = false; }
  PhaseScope(const PhaseScope&) = delete;

  static bool is_open(const Group& group) { return group.is_in_phase_; }
  /// Every rank calls it, or is in a synchronous call. Returns true if any rank has failed.
  bool end(bool has_failed) {
    group_.is_in_phase_ = false;
    return group_.count_failed(has_failed) > 0;
  }

 private:
  Group& group_;
};

/// Returns true if any rank has failed.
/// @throws `mine`, if not null, when the others are unreachable
bool end_phase(PhaseScope& scope, const std::exception_ptr& mine) {
  try {
    return scope.end(mine != nullptr);
  } catch (...) {
    if (mine) std::rethrow_exception(mine);
    throw;
  }
}

void run_phase(Group& group, const char* name, const std::function<void()>& body) {
  const char* const outer = group.phase();
  group.enter(name);
  together(group, body);
  group.enter(outer);
}

void together(Group& group, const std::function<void()>& body) {
  if (group.is_alone() || PhaseScope::is_open(group)) return body();
  PhaseScope scope(group);
  std::exception_ptr mine;
  bool has_peer_failed = false;
  try {
    body();
  } catch (const PeerStopped&) {
    has_peer_failed = true;
  } catch (...) {
    mine = std::current_exception();
  }
  if (has_peer_failed || end_phase(scope, mine)) throw_failure(group, mine);
}

bool on_any_rank(Group& group, bool here) {
  if (group.is_alone()) return here;
  int64_t count = here ? 1 : 0;
  group.all_reduce(std::span<int64_t>(&count, 1));
  return count > 0;
}

}  // namespace rematch
