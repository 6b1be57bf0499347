#include "learn/data/image_path.h"

#include <fmt/core.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "base/missing_path.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

bool is_file(const std::string& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode);
}

}  // namespace

bool is_inside_record(std::string_view path) {
  constexpr size_t kFewest = 256;  // characters of base64: more than a hash as a name
  const size_t end =
      path.find_last_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=");
  return path.find("data:image/") != path.npos || path.size() - (end + 1) >= kFewest;
}

std::string existing_form(const std::string& path) {
  if (is_file(path) || !is_valid_utf8(path)) return path;
  const std::string other = swap_unicode_form(path);
  return is_file(other) ? other : path;
}

std::optional<Problem> find_path_problem(const std::string& path) {
  if (is_file(path)) return std::nullopt;
  struct stat info{};
  const std::string reason =
      ::stat(path.c_str(), &info) == 0 ? "not a regular file" : std::strerror(errno);
  if (path.find("://") != path.npos)
    return Problem{.error = "an image is an address, and addresses are not fetched",
                   .what = path,
                   .fix = "download the image, and write the path of the file"};
  constexpr size_t kMostShown = 60;
  if (is_inside_record(path))
    return Problem{.error = "an image is inside its record, and only files are read",
                   .what = shown_start(path, kMostShown),
                   .fix = "write the image into a file, and its path into \"images\""};
  if (existing_form(path) != path)
    return Problem{.error = "an image's name is in another Unicode form than that of its file",
                   .what = path + ": one of them writes an accent as a separate character",
                   .fix = "`rematch data check FILE --fix OUT` writes the names of the files"};
  const std::string advice = windows_path_advice(path);
  return Problem{.error = "an image file is missing",
                 .what = fmt::format("{}: {}", path, reason),
                 .fix = !advice.empty() ? advice
                                        : "correct \"images\" (relative paths start at the "
                                          "directory of the JSONL), or remove the record"};
}

}  // namespace rematch
