#include "base/missing_path.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/text.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostCompared = 500;

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
         !is_dir(missing.parent_path()))
    missing = missing.parent_path();
  const fs::path directory = missing.parent_path();
  Strings names, alike;
  for (fs::directory_iterator entry(directory.empty() ? "." : directory, error), end;
       !error && entry != end && names.size() <= kMostCompared; entry.increment(error))
    names.push_back(entry->path().filename().string());
  std::ranges::sort(names);
  const std::string name = missing.filename().string(), ending = missing.extension().string();
  alike = near_names(name, names, kMost);
  for (const std::string& each : names) {
    if (alike.size() < kMost && !ending.empty() && fs::path(each).extension() == ending &&
        !contains(alike, each))
      alike.push_back(each);
  }
  for (std::string& each : alike) each = (directory / each).string();
  const bool has_any = !alike.empty() && !path.empty() && names.size() <= kMostCompared;
  return has_any ? "; there is " + join(alike, ", ") : "";
}

std::string windows_path_advice(const std::string& path) {
  const size_t colon = path.find(":/");  // also behind a directory that it was joined to
  const bool has_drive = colon != path.npos && colon > 0 && (colon == 1 || path[colon - 2] == '/');
  if (!has_drive && path.find('\\') == path.npos) return "";
  return "this is a path of Windows; write / between directories, and where the file lies here (in "
         "WSL: /mnt/c/… for C:\\…)";
}

}  // namespace rematch
