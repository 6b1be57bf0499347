#pragma once
#include <filesystem>
#include <string>
#include <unordered_map>

namespace rematch {

/// Finds images outside the JSONL's directory that an absolute path or a symbolic link leads to:
/// no copy of the files at the same relative paths has them. A path with `..` alone is not one.
class OutsideImages {
 public:
  explicit OutsideImages(const std::string& jsonl_path);

  /// @param path  image path, as in Sample. Cost: one stat; for a new directory also one per part
  bool is_outside(const std::string& path);

 private:
  bool is_outside_home(const std::filesystem::path& path) const;
  /// The same for the directory of an image, but not when plain `..` leads there.
  bool is_foreign(const std::string& path) const;

  std::string written_;                          // directory of the JSONL as given, with a slash
  std::filesystem::path home_;                   // the same without links
  std::unordered_map<std::string, bool> known_;  // directories as written → outside
};

}  // namespace rematch
