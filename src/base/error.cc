#include "base/error.h"

#include <fmt/core.h>

#include <filesystem>
#include <utility>

#include "base/terminal_text.h"

namespace rematch {
namespace {

// The ONE table of error kinds.
struct KindRow {
  ErrorKind kind;
  const char* name;
  int exit_code;
};
constexpr KindRow kKinds[] = {
    {ErrorKind::kConfig, "config", 2},
    {ErrorKind::kData, "data", 3},
    {ErrorKind::kEnvironment, "environment", 4},
    {ErrorKind::kBug, "bug", 70},
    {ErrorKind::kInterrupted, "interrupted", 130},
};

const KindRow& row(ErrorKind kind) {
  for (const KindRow& candidate : kKinds) {
    if (candidate.kind == kind) return candidate;
  }
  return kKinds[3];
}

}  // namespace

int exit_code(ErrorKind kind) { return row(kind).exit_code; }
const char* kind_name(ErrorKind kind) { return row(kind).name; }

std::optional<Problem> path_problem(const std::exception& error) {
  const auto* refused = dynamic_cast<const std::filesystem::filesystem_error*>(&error);
  if (refused == nullptr) return std::nullopt;
  if (refused->path1().empty())
    return Problem{
        .error = "a path is empty",
        .where = "the command line or the configuration",
        .what = "an empty text was given for a file or directory",
        .fix = "give the path; in a shell, the variable that should hold it may be unset"};
  return Problem{
      .error = fmt::format("cannot use {}", refused->path1().string()),
      .where = refused->path1().string(),
      .what = refused->code().message(),
      .fix = "check that the path is right and that you may read it and search its directories"};
}

Problem bug_problem(std::string what) {
  return {.error = "Rematch hit a bug",
          .where = "inside the program",
          .what = std::move(what),
          .fix = "please report it with the configuration and this message"};
}

// Names of files and labels may hold control characters. `what` and `fix` may have several lines.
std::string format_problem(const Problem& problem) {
  std::string text = fmt::format("error: {}\n", printable_lines(problem.error));
  text += fmt::format("  where: {}\n", printable(problem.where));
  text += fmt::format("  what:  {}\n", printable_lines(problem.what));
  text += fmt::format("  fix:   {}\n", printable_lines(problem.fix));
  return text;
}

UserError::UserError(ErrorKind kind, Problem problem)
    : UserError(kind, std::vector<Problem>{std::move(problem)}) {}

UserError::UserError(ErrorKind kind, std::vector<Problem> problems)
    : kind_(kind), problems_(std::move(problems)) {
  REMATCH_CHECK(!problems_.empty(), "a UserError needs a problem");
  for (const Problem& problem : problems_)
    text_ += (text_.empty() ? "" : "\n") + format_problem(problem);
}

void check_failed(const char* file, int line, const char* condition, const std::string& values) {
  throw InternalError(
      fmt::format("{}:{}: check failed: {}{}{} (this is a bug in Rematch; please report it)", file,
                  line, condition, values.empty() ? "" : "; ", values));
}

}  // namespace rematch
