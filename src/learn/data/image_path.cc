#include "learn/data/image_path.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/missing_path.h"
#include "base/terminal_text.h"

namespace rematch {

std::optional<Problem> find_path_problem(const std::string& path) {
  struct stat info{};
  const bool found = ::stat(path.c_str(), &info) == 0;
  if (found && S_ISREG(info.st_mode)) return std::nullopt;
  const std::string reason = found ? "not a regular file" : std::strerror(errno);
  if (path.find("://") != path.npos)
    return Problem{.error = "an image is an address, and addresses are not fetched",
                   .what = path,
                   .fix = "download the image, and write the path of the file"};
  constexpr size_t kMostShown = 60;
  if (path.find("data:image/") != path.npos)
    return Problem{.error = "an image is inside its record, and only files are read",
                   .what = shown_start(path, kMostShown),
                   .fix = "write the image into a file, and its path into \"images\""};
  const std::string advice = windows_path_advice(path);
  return Problem{.error = "an image file is missing",
                 .what = fmt::format("{}: {}", path, reason),
                 .fix = !advice.empty() ? advice
                                        : "correct \"images\" (relative paths start at the "
                                          "directory of the JSONL), or remove the record"};
}

}  // namespace rematch
