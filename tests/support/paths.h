#pragma once
#include <string>

namespace rematch::test {

/// Absolute path of a file of the checkout, e.g. source_path("tests/golden/vectors/parse.jsonl").
std::string source_path(const std::string& relative);

/// Absolute path of a file of the build tree, e.g. binary_path("bin/rematch").
std::string binary_path(const std::string& relative);

/// A fresh directory that is removed when the object dies.
class TempDir {
 public:
  TempDir();
  ~TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  const std::string& path() const { return path_; }
  /// Path of an entry below it.
  std::string file(const std::string& name) const { return path_ + "/" + name; }
  /// Writes a file below it (parents created) and returns its path.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

}  // namespace rematch::test
