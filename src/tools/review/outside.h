#pragma once
#include <filesystem>
#include <string>

namespace rematch {

/// Finds images outside the JSONL's directory that an absolute path or a symbolic link leads to:
/// no copy of the files at the same relative paths has them. A path with `..` alone is not one.
class OutsideImages {
 public:
  explicit OutsideImages(const std::string& jsonl_path);

  /// @param path  image path, as in Sample. Cost: one stat for each part of it
  bool is_outside(const std::string& path) const;

 private:
  std::string written_;         // directory of the JSONL as given, with a slash
  std::filesystem::path home_;  // the same without links
};

}  // namespace rematch
