#include "data/outside.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

fs::path canonical_directory(const std::string& path) {
  std::error_code ignored;
  const fs::path parent = fs::path(path).parent_path();
  return fs::weakly_canonical(parent.empty() ? fs::path(".") : parent, ignored);
}

}  // namespace

OutsideImages::OutsideImages(const std::string& jsonl_path)
    : home_(canonical_directory(jsonl_path)) {}

bool OutsideImages::is_outside_home(const fs::path& path) const {
  const fs::path relative = path.lexically_relative(home_);
  return !relative.empty() && *relative.begin() == "..";
}

bool OutsideImages::is_outside(const std::string& path) {
  std::error_code ignored;
  const auto [known, is_new] = known_.try_emplace(fs::path(path).parent_path().string(), false);
  if (is_new) known->second = is_outside_home(canonical_directory(path));
  return known->second ||
         (fs::is_symlink(path, ignored) && is_outside_home(fs::weakly_canonical(path, ignored)));
}

}  // namespace rematch
