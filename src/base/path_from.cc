#include "base/path_from.h"

#include <algorithm>
#include <cctype>

#include "base/file.h"

namespace rematch {

namespace fs = std::filesystem;

PathFrom::PathFrom(const std::string& directory)
    : written_(fs::absolute(directory).lexically_normal()),
      resolved_(fs::weakly_canonical(fs::absolute(directory))) {}

std::string PathFrom::operator()(const std::string& path) const {
  const fs::path plain = fs::absolute(path).lexically_normal().lexically_proximate(written_);
  std::error_code missing;
  if (fs::equivalent(fs::weakly_canonical(resolved_ / plain, missing), path, missing))
    return plain.string();
  return fs::weakly_canonical(fs::absolute(path)).lexically_proximate(resolved_).string();
}

bool looks_like_hub_id(const std::string& path) {
  const auto is_plain = [](unsigned char c) {
    return (c < 0x80 && std::isalnum(c)) || c == '-' || c == '_' || c == '.' || c == '/';
  };
  if (path.ends_with(".yaml") || is_dir(fs::path(path).parent_path())) return false;
  return !path.empty() && path.front() != '.' && path.front() != '/' && path.back() != '/' &&
         std::ranges::count(path, '/') == 1 && std::ranges::all_of(path, is_plain);
}

}  // namespace rematch
