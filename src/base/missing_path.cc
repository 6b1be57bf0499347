#include "base/missing_path.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <vector>

#include "base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostCompared = 500;

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
  return {ErrorKind::kEnvironment,
          Problem{.error = "the " + thing + " does not exist",
                  .where = path,
                  .what = "no file or directory has this name" + existing_names(path),
                  .fix = advice.empty() ? fix : advice}};
}

std::string existing_names(const std::string& path) {
  constexpr size_t kMost = 3;
  std::error_code error;
  if (const fs::path target = fs::read_symlink(path, error); !error)
    return "; it is a link to " + target.string() + ", which does not exist";
  fs::path missing = path;
  if (!missing.has_filename()) missing = missing.parent_path();  // "data/"
  while (missing.has_parent_path() && missing != missing.parent_path() &&
         !fs::is_directory(missing.parent_path(), error))
    missing = missing.parent_path();
  const fs::path directory = missing.parent_path();
  std::vector<std::string> names, alike;
  for (fs::directory_iterator entry(directory.empty() ? "." : directory, error), end;
       !error && entry != end && names.size() <= kMostCompared; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::sort(names.begin(), names.end());
  const std::string name = missing.filename().string(), ending = missing.extension().string();
  alike = near_names(name, names, kMost);
  for (const std::string& each : names) {
    if (alike.size() < kMost && !ending.empty() && fs::path(each).extension() == ending &&
        std::find(alike.begin(), alike.end(), each) == alike.end())
      alike.push_back(each);
  }
  for (std::string& each : alike) each = (directory / each).string();
  const bool has_any = !alike.empty() && !path.empty() && names.size() <= kMostCompared;
  return has_any ? "; there is " + join(alike, ", ") : "";
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
