#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rematch {

/// Finds copies of files. Two files count as equal when they are the same file, or have the same
/// size and the same first and last 16 KiB: image files are compressed, so that any other picture
/// differs there. Files that cannot be read equal none.
class FileSet {
 public:
  /// Cost: one stat.
  void insert(const std::string& path);
  /// Cost: one stat; for a file of known size, up to 32 KiB of both are read, once each.
  bool has_content_of(const std::string& path);

 private:
  struct SameSize {
    std::vector<std::string> paths;  ///< not hashed yet
    std::set<std::string> hashes;
  };

  std::set<std::pair<dev_t, ino_t>> files_;
  std::unordered_map<int64_t, SameSize> by_size_;
};

}  // namespace rematch
