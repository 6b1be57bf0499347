#include "program/config/prompt_file.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

[[noreturn]] void fail(const std::string& path, const std::string& error, const std::string& what,
                       const std::string& fix, ErrorKind kind = ErrorKind::kConfig) {
  throw UserError(kind, {.error = error, .where = path, .what = what, .fix = fix});
}

std::string read_text(const std::string& path) {
  try {
    return read_file(path);
  } catch (const UserError& error) {
    fail(path, "the prompt file cannot be read", error.problems().front().what,
         "correct the path (relative to the current directory), or write the text itself",
         error.kind());
  }
}

}  // namespace

std::string read_prompt_file(const std::string& path) {
  std::string text = read_text(path);
  if (text.size() > kMostBytes) {
    fail(path, "the prompt file is too large",
         fmt::format("{} has {} bytes; the limit is {}", path, text.size(), kMostBytes),
         "check that this is the prompt");
  }
  if (!is_valid_utf8(text))
    fail(path, "the prompt file is not UTF-8 text", path, "save it as UTF-8");
  if (text.starts_with("\xEF\xBB\xBF")) text.erase(0, 3);
  text = python_strip(text);  // editors end files with a newline
  if (text.empty())
    fail(path, "the prompt file is empty", path,
         "write the prompt into it, or remove the key for the built-in prompt");
  return text;
}

}  // namespace rematch
