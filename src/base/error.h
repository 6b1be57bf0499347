#pragma once
#include <exception>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// The kind of an error; decides the exit code of the process (BEHAVIOUR 18).
enum class ErrorKind {
  kConfig,       ///< configuration or usage; exit 2
  kData,         ///< a record, image, rollout or checkpoint content; exit 3
  kEnvironment,  ///< vLLM, GPU, files, disk; exit 4
  kBug,          ///< a bug in Rematch; exit 70
  kInterrupted,  ///< SIGINT or SIGTERM, state saved; exit 130
};

/// Exit code of the process for an error of this kind.
int exit_code(ErrorKind kind);

/// Short name used in `rematch stage` answers: "config", "data", "environment", "bug",
/// "interrupted".
const char* kind_name(ErrorKind kind);

/// One problem, in the four lines a user reads.
struct Problem {
  std::string error;  ///< one line, no trailing full stop
  std::string where;  ///< file:line:col, sample, or key; never empty
  std::string what;   ///< the numbers or values involved
  std::string fix;    ///< at least one action to take

  friend void fields(auto& wire, Problem& problem) {
    wire(problem.error, problem.where, problem.what, problem.fix);
  }
};

/// Thrown for everything a user can cause and fix. Libraries throw it; only cli/ prints it.
class UserError : public std::exception {
 public:
  UserError(ErrorKind kind, Problem problem);
  /// Several problems found together (configuration). `problems` must not be empty.
  UserError(ErrorKind kind, std::vector<Problem> problems);

  ErrorKind kind() const { return kind_; }
  const std::vector<Problem>& problems() const { return problems_; }
  /// All problems as the terminal shows them: `error:`, `where`, `what`, `fix` lines each.
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  ErrorKind kind_;
  std::vector<Problem> problems_;
  std::string text_;
};

/// An error with one problem; `throw data_error({.error = …})`.
inline UserError config_error(Problem problem) { return {ErrorKind::kConfig, std::move(problem)}; }
inline UserError data_error(Problem problem) { return {ErrorKind::kData, std::move(problem)}; }
inline UserError environment_error(Problem problem) {
  return {ErrorKind::kEnvironment, std::move(problem)};
}

/// The Problem (environment) of a path that the system refuses; nullopt unless that is what
/// std::filesystem has thrown.
std::optional<Problem> path_problem(const std::exception& error);

/// The Problem of an unexpected exception.
Problem bug_problem(std::string what);

/// The four lines of one problem, each ended by a newline.
std::string format_problem(const Problem& problem);

/// A bug in Rematch, found by REMATCH_CHECK. Exit 70.
class InternalError : public std::exception {
 public:
  explicit InternalError(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

/// Throws InternalError naming file, line and condition; `values` carries the numbers involved.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& values);

}  // namespace rematch

/// (Not named CHECK, because c10 defines that.)
/// Asserts what only a bug in Rematch can break, in release builds too: REMATCH_CHECK(a == b,
/// fmt::format("{} {}", a, b)).
#define REMATCH_CHECK(condition, ...)                                                    \
  do {                                                                                   \
    if (!(condition))                                                                    \
      ::rematch::check_failed(__FILE__, __LINE__, #condition, std::string{__VA_ARGS__}); \
  } while (false)
