#include "learn/data/problem_list.h"

#include <fmt/core.h>

#include <algorithm>
#include <functional>

#include "base/terminal_text.h"

namespace rematch {
namespace {

constexpr size_t kMostOfAKind = 3, kMostShown = 9;  // problems

}  // namespace

void ProblemList::add(const UserError& error) {
  ++num_records_;
  for (const Problem& problem : error.problems()) {
    ++num_;
    const size_t of_this_kind = ++kinds_[problem.error];
    if (of_this_kind > kMostOfAKind || shown_.size() >= kMostShown) continue;
    shown_.push_back(problem);
    shown_.back().fix = with_file(problem.fix, path_);
  }
}

void ProblemList::throw_if_any() {
  if (shown_.empty()) return;
  if (num_ > shown_.size()) shown_.push_back(summary());
  throw UserError(ErrorKind::kData, shown_);
}

Problem ProblemList::summary() const {
  std::vector<std::pair<std::string, size_t>> kinds(kinds_.begin(), kinds_.end());
  std::ranges::stable_sort(kinds, std::greater(), [](const auto& kind) { return kind.second; });
  std::string counts;
  for (size_t i = 0; i < std::min(kinds.size(), kMostShown); ++i)
    counts += fmt::format("{}{} × {}", i > 0 ? "; " : "", kinds[i].second, kinds[i].first);
  return {.error = fmt::format("{} problems in {}, of which {} are shown", num_,
                               counted(num_records_, "line"), shown_.size()),
          .where = path_,
          .what = counts + (kinds.size() > kMostShown ? "; …" : ""),
          .fix = fix_};
}

UserError with_record(const UserError& error, const std::string& where) {
  std::vector<Problem> problems = error.problems();
  for (Problem& problem : problems) {
    if (problem.where.find(where) == std::string::npos)
      problem.where += fmt::format(" ({})", where);
  }
  return UserError(error.kind(), std::move(problems));
}

}  // namespace rematch
