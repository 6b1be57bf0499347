#include "base/keep_source.h"

#include <fmt/core.h>

#include <filesystem>

#include "base/error.h"

namespace rematch {

void keep_source(const std::string& source, const std::string& out) {
  std::error_code absent;
  if (!std::filesystem::equivalent(source, out, absent)) return;
  throw UserError(ErrorKind::kConfig, {.error = "the output would replace the file that is read",
                                       .where = out,
                                       .what = fmt::format("it is the same file as {}", source),
                                       .fix = "give --out (or --fix) another place"});
}

}  // namespace rematch
