#include "tools/review/outside.h"

#include "base/file.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

fs::path without_links(const fs::path& path) {
  std::error_code ignored;
  return fs::weakly_canonical(path, ignored);
}

}  // namespace

OutsideImages::OutsideImages(const std::string& jsonl_path)
    : written_(fs::path(parent_of(jsonl_path)) / ""), home_(without_links(parent_of(jsonl_path))) {}

bool OutsideImages::is_outside(const std::string& path) const {
  const fs::path found = without_links(path), relative = found.lexically_relative(home_);
  if (relative.empty() || *relative.begin() != "..") return false;
  return !path.starts_with(written_) ||
         found != (home_ / path.substr(written_.size())).lexically_normal();
}

}  // namespace rematch
