#include "base/missing_path.h"

#include <algorithm>
#include <cctype>

namespace rematch {
namespace {

bool is_drive(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; }

/// The place of a drive ("C:/" or with a backslash) at the start or behind a slash; npos without.
size_t find_drive(const std::string& path) {
  for (size_t i = 0; i + 2 < path.size(); ++i) {
    const bool begins = i == 0 || path[i - 1] == '/';
    if (begins && is_drive(path[i]) && path[i + 1] == ':' &&
        (path[i + 2] == '\\' || path[i + 2] == '/'))
      return i;
  }
  return std::string::npos;
}

}  // namespace

UserError missing_path(const std::string& thing, const std::string& path, const std::string& fix) {
  std::string advice = windows_path_advice(path);
  if (path.starts_with("~/"))
    advice = "`~` is expanded by a shell, not in a file: write the whole path, /home/…/" +
             path.substr(2);
  return {ErrorKind::kEnvironment, Problem{.error = "the " + thing + " does not exist",
                                           .where = path,
                                           .what = "no file or directory has this name",
                                           .fix = advice.empty() ? fix : advice}};
}

std::string windows_path_advice(const std::string& path) {
  std::string slashes = path;
  std::replace(slashes.begin(), slashes.end(), '\\', '/');
  if (const size_t at = find_drive(path); at != std::string::npos) {
    const char drive = static_cast<char>(std::tolower(static_cast<unsigned char>(path[at])));
    return std::string("this is a path of Windows; write where the file lies here (in WSL: /mnt/") +
           drive + slashes.substr(at + 2) + ")";
  }
  if (slashes == path) return "";
  if (slashes.starts_with("./")) slashes.erase(0, 2);
  return "this is a path of Windows; write / between directories: " + slashes;
}

}  // namespace rematch
