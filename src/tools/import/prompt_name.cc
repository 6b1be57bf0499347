#include "tools/import/prompt_name.h"

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr std::string_view kHole = "{}";

}  // namespace

std::optional<std::string> find_name(const std::string& pattern, const std::string& question) {
  const size_t hole = pattern.find(kHole);
  if (hole == pattern.npos) return std::nullopt;
  const std::string text = lower_case(question), before = lower_case(pattern.substr(0, hole)),
                    after = lower_case(pattern.substr(hole + kHole.size()));
  size_t begin = text.find(before);
  if (begin == text.npos) return std::nullopt;
  begin += before.size();
  const size_t end = after.empty() ? text.size() : text.find(after, begin);
  if (end == text.npos) return std::nullopt;
  std::string name = python_strip(question.substr(begin, end - begin));
  return name.empty() ? std::nullopt : std::optional<std::string>(name);
}

void check_name_pattern(const std::string& pattern) {
  const size_t hole = pattern.find(kHole);
  if (pattern.empty() || (hole != pattern.npos && pattern.find(kHole, hole + 1) == pattern.npos &&
                          pattern.size() > kHole.size()))
    return;
  throw config_error({.error = "the pattern needs one {} for the name",
                      .where = "--label-from-prompt",
                      .what = pattern,
                      .fix = "write it such as \"Locate {} in\""});
}

}  // namespace rematch
