#include "base/path_from.h"

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

}  // namespace rematch
