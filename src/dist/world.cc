#include "dist/world.h"

#include <fmt/core.h>

#include <cstdlib>
#include <string>

#include "base/error.h"

namespace rematch {

World world_from_environment() {
  const char* text = std::getenv("WORLD_SIZE");
  if (text == nullptr || *text == '\0') return {};
  char* end = nullptr;
  const long size = std::strtol(text, &end, 10);
  if (*end != '\0' || size < 1) {
    throw UserError(ErrorKind::kEnvironment, {.error = "WORLD_SIZE is not a positive integer",
                                              .where = "environment variable WORLD_SIZE",
                                              .what = fmt::format("\"{}\"", text),
                                              .fix = "unset it or set it to 1"});
  }
  if (size > 1) {
    throw UserError(ErrorKind::kEnvironment, {.error = "training on several ranks is not built yet",
                                              .where = "environment variable WORLD_SIZE",
                                              .what = fmt::format("WORLD_SIZE={}", size),
                                              .fix = "start one process: unset WORLD_SIZE or set it to 1"});
  }
  return {};
}

}  // namespace rematch
