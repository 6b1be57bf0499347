#include "ranks/agreement.h"

#include <c10/util/Exception.h>
#include <fmt/core.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/interrupt.h"
#include "base/json.h"

namespace rematch {
namespace {

/// What a rank tells the others about its failure.
struct Report {
  bool keeps_state = false;
  bool is_interrupt = false;
  bool is_of_peer = false;  ///< told by another rank
  ErrorKind kind = ErrorKind::kBug;
  std::vector<Problem> problems;
};

Report bug(std::string what) { return {.problems = {bug_problem(std::move(what))}}; }

Report report_of(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const Interrupted&) {
    return {.keeps_state = true, .is_interrupt = true, .kind = ErrorKind::kInterrupted};
  } catch (const UserError& error) {
    return {.keeps_state = dynamic_cast<const KeepsState*>(&error) != nullptr,
            .is_of_peer = dynamic_cast<const PeerFailure*>(&error) != nullptr,
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

std::string text_of(const Report& report) {
  Json problems = Json::array();
  for (const Problem& problem : report.problems)
    problems.push_back({problem.error, problem.where, problem.what, problem.fix});
  return Json({report.keeps_state, report.is_interrupt, report.is_of_peer,
               static_cast<int>(report.kind), problems})
      .dump(-1, ' ', false, Json::error_handler_t::replace);
}

Report read_report(const std::string& text) {
  const Json json = Json::parse(text);
  Report report{.keeps_state = json[0],
                .is_interrupt = json[1],
                .is_of_peer = json[2],
                .kind = static_cast<ErrorKind>(json[3].get<int>())};
  for (const Json& problem : json[4])
    report.problems.push_back({problem[0], problem[1], problem[2], problem[3]});
  return report;
}

bool is_worse(const Report& report, const Report& other) {
  if (report.is_of_peer != other.is_of_peer) return other.is_of_peer;
  return other.keeps_state && !report.keeps_state;
}

[[noreturn]] void throw_peer_failure(int rank, Report report) {
  if (report.is_interrupt) throw Interrupted{};
  for (Problem& problem : report.problems)
    problem.error = fmt::format("rank {}: {}", rank, problem.error);
  if (report.keeps_state) throw KeepingPeerFailure(report.kind, std::move(report.problems));
  throw PeerFailure(report.kind, std::move(report.problems));
}

}  // namespace

void Agreement::attempt(const std::function<void()>& part) {
  if (failure_) return;
  if (group_.is_alone()) return part();
  try {
    part();
  } catch (...) {
    failure_ = std::current_exception();
  }
}

void Agreement::conclude() {
  if (!on_any_rank(group_, has_failed())) return;
  const std::vector<std::string> texts =
      group_.all_gather(failure_ ? text_of(report_of(failure_)) : std::string());
  std::optional<std::pair<int, Report>> worst;
  for (int rank = 0; rank < group_.size(); ++rank) {
    if (texts[static_cast<size_t>(rank)].empty()) continue;
    Report report = read_report(texts[static_cast<size_t>(rank)]);
    if (!worst || is_worse(report, worst->second)) worst = {rank, std::move(report)};
  }
  const std::exception_ptr mine = std::exchange(failure_, nullptr);
  // A failure of this rank's own is told in its own words, unless it would save a state that the
  // others do not.
  if (mine && !is_worse(worst->second, report_of(mine)) &&
      report_of(mine).keeps_state == worst->second.keeps_state) {
    std::rethrow_exception(mine);
  }
  throw_peer_failure(group_.run_rank(worst->first), std::move(worst->second));
}

void together(Group& group, const std::function<void()>& part) {
  Agreement all(group);
  all.attempt(part);
  all.conclude();
}

bool on_any_rank(Group& group, bool here) {
  if (group.is_alone()) return here;
  int64_t count = here ? 1 : 0;
  group.all_reduce(std::span<int64_t>(&count, 1));
  return count > 0;
}

}  // namespace rematch
