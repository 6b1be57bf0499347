#include "program/assembly/report.h"

#include <algorithm>

namespace rematch {

bool Report::attempt(const std::function<void()>& step) {
  if (terminal_ != nullptr) {
    step();
    return true;
  }
  try {
    step();
    return true;
  } catch (const UserError& error) {
    for (const Problem& problem : error.problems()) {
      const auto is_known = [&](const auto& known) {
        return known.second.error == problem.error && known.second.where == problem.where;
      };
      if (std::ranges::none_of(problems_, is_known)) problems_.emplace_back(error.kind(), problem);
    }
    return false;
  }
}

void Report::throw_problems() const {
  std::vector<Problem> all;
  for (const auto& [kind, problem] : problems_) all.push_back(problem);
  if (!all.empty()) throw UserError(problems_.front().first, std::move(all));
}

void Report::warn(const std::string& text) {
  if (text.empty()) return;
  if (terminal_ != nullptr) return terminal_->warn(text);
  if (!contains(warnings_, text)) warnings_.push_back(text);
}

void Report::progress(const Progress& state) {
  if (terminal_ != nullptr) terminal_->progress(state);
}

void Report::finish_progress() {
  if (terminal_ != nullptr) terminal_->finish_progress();
}

}  // namespace rematch
