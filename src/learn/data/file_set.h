#pragma once
#include <sys/types.h>

#include <cstdint>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// Device and number of a file, the same under all its names; of a missing file those of no other.
using FileId = std::pair<dev_t, ino_t>;
/// Cost: one stat.
FileId file_id(const std::string& path);

/// Finds copies of files. Two paths count as equal if they name the same file, or files with the
/// same size and the same first and last 16 KiB: images are compressed, so different ones differ
/// there. An unreadable file equals no other.
class FileSet {
 public:
  /// Cost: one stat.
  void insert(const std::string& path);
  /// The inserted path of this file or of a copy; "" without one. Cost: one stat; if the set has a
  /// file of the same size, up to 32 KiB of both are read, of inserted files once.
  std::string find(const std::string& path);
  /// Inserts it unless the set has it or a copy. @return find(), or `path`
  std::string add(const std::string& path);
  bool contains(const std::string& path) { return !find(path).empty(); }

 private:
  struct SameSize {
    Strings paths;                             ///< not hashed yet
    std::map<std::string, std::string> found;  ///< path by hash
  };

  std::map<FileId, std::string> files_;  ///< path
  std::unordered_map<int64_t, SameSize> by_size_;
};

}  // namespace rematch
