#pragma once
#include <filesystem>
#include <string>
#include <unordered_map>

namespace rematch {

/// Finds images outside the JSONL's directory: through `..`, an absolute path or a symbolic link.
/// They are missing if that directory is copied to another machine.
class OutsideImages {
 public:
  explicit OutsideImages(const std::string& jsonl_path);

  /// @param path  image path, as in Sample. Cost: one stat; for a new directory also one per part
  bool is_outside(const std::string& path);

 private:
  bool is_outside_home(const std::filesystem::path& path) const;

  std::filesystem::path home_;
  std::unordered_map<std::string, bool> known_;  // directories as written → outside
};

}  // namespace rematch
