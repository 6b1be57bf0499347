#pragma once
#include <filesystem>
#include <string>
#include <unordered_map>

namespace rematch {

/// Finds images that lie outside the directory of the JSONL that names them: by `..`, an absolute
/// path or a symbolic link. They do not travel with that directory.
class OutsideImages {
 public:
  explicit OutsideImages(const std::string& jsonl_path);

  /// @param path  of an image, as Sample has it. Cost: one stat, and one for each part of a new
  /// directory
  bool is_outside(const std::string& path);

 private:
  bool leaves_home(const std::filesystem::path& path) const;

  std::filesystem::path home_;
  std::unordered_map<std::string, bool> known_;  // directories as they are written
};

}  // namespace rematch
