#include "learn/data/outside.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

fs::path directory_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? fs::path(".") : parent;
}

fs::path canonical_directory(const std::string& path) {
  std::error_code ignored;
  return fs::weakly_canonical(directory_of(path), ignored);
}

}  // namespace

OutsideImages::OutsideImages(const std::string& jsonl_path)
    : written_(directory_of(jsonl_path) / ""), home_(canonical_directory(jsonl_path)) {}

bool OutsideImages::is_outside_home(const fs::path& path) const {
  const fs::path relative = path.lexically_relative(home_);
  return !relative.empty() && *relative.begin() == "..";
}

bool OutsideImages::is_foreign(const std::string& path) const {
  const fs::path found = canonical_directory(path);
  if (!path.starts_with(written_)) return is_outside_home(found);
  const fs::path plain = home_ / path.substr(written_.size());
  return is_outside_home(found) && found != plain.lexically_normal().parent_path();
}

bool OutsideImages::is_outside(const std::string& path) {
  std::error_code ignored;
  const auto [known, is_new] = known_.try_emplace(fs::path(path).parent_path().string(), false);
  if (is_new) known->second = is_foreign(path);
  return known->second ||
         (fs::is_symlink(path, ignored) && is_outside_home(fs::weakly_canonical(path, ignored)));
}

}  // namespace rematch
