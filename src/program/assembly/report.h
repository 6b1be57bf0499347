#pragma once
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/observe/terminal.h"

namespace rematch {

/// Takes the problems and warnings of an opening. A run stops at its first problem and shows
/// warnings as they come; `rematch check` collects all of them.
class Report {
 public:
  /// Throws problems; passes warnings and progress to the terminal, which must outlive it.
  explicit Report(Terminal& terminal) : terminal_(&terminal) {}
  /// Collects problems and warnings; shows nothing.
  Report() = default;

  /// Runs a step.
  /// @return false when it failed and its problems were collected
  /// @throws what the step throws, unless problems are collected and it is a UserError
  bool attempt(const std::function<void()>& step);
  /// Does nothing for an empty text.
  void warn(const std::string& text);
  void warn_all(const Strings& texts) {
    for (const std::string& text : texts) warn(text);
  }
  void progress(const Progress& state);
  void finish_progress();

  /// The collected problems, each once, with the kind of its error.
  const std::vector<std::pair<ErrorKind, Problem>>& problems() const { return problems_; }
  const Strings& warnings() const { return warnings_; }
  /// @throws UserError with all collected problems, of the kind of the first, if there are any
  void throw_problems() const;

 private:
  Terminal* terminal_ = nullptr;  ///< null: collects
  std::vector<std::pair<ErrorKind, Problem>> problems_;
  Strings warnings_;
};

}  // namespace rematch
