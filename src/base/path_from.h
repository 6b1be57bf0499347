#pragma once
#include <filesystem>
#include <string>

namespace rematch {

/// Writes paths of files relative to one directory, so that both can move together.
class PathFrom {
 public:
  /// @param directory  may be missing yet, or be a symbolic link
  explicit PathFrom(const std::string& directory);

  /// `path` relative to the directory. Links inside it stay if the result leads to the same file,
  /// else all links are resolved.
  std::string operator()(const std::string& path) const;

 private:
  std::filesystem::path written_, resolved_;  // the directory, as given and without links
};

/// True for text such as OWNER/NAME, a model's id on the Hugging Face hub; false for a YAML file
/// and for a path whose parent directory exists.
bool looks_like_hub_id(const std::string& path);

}  // namespace rematch
