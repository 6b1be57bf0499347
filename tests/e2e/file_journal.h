#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rematch::test {

/// An operation on files, as tests/support/journal_shim.c writes it down.
struct FileOperation {
  std::string name;    ///< write, truncate, sync, create, mkdir, unlink, rmdir, rename or exchange
  int64_t number = 0;  ///< write: offset; truncate: size
  std::string bytes;   ///< write
  std::string path;    ///< absolute
  std::string second;  ///< rename, exchange
};

/// The names (files made, renamed, removed) that survive a power loss without a sync.
enum class LostNames {
  kNone,         ///< every one is kept
  kAllUnsynced,  ///< ext4 and xfs: the journal was not written since the last sync of anything
  /// stricter than ext4 and xfs: each directory keeps its own operations up to some moment after
  /// its own sync
  kByDirectory,
};

/// The bytes that survive without a sync.
enum class LostBytes {
  kNone,   ///< all are kept
  kAll,    ///< the file has the size and bytes of its last sync
  kZeros,  ///< sizes are kept, bytes are zeros
  kTorn,   ///< up to some moment they are kept; after it they are zeros or missing
};

/// path of a file below the root, or of a directory with a '/' at its end → bytes
using Tree = std::map<std::string, std::string>;

/// The operations of a run, and what a loss of power after any of them may leave.
class FileJournal {
 public:
  /// @param journal  as the shim wrote it.
  /// @param root  directory whose paths are meant
  FileJournal(std::string_view journal, const std::string& root);

  const std::vector<FileOperation>& operations() const { return operations_; }
  /// The files below the root after the first `count` operations and a loss of power.
  /// @param draw  gives numbers in [0, 1) for what is left to chance
  Tree after(size_t count, LostNames names, LostBytes bytes,
             const std::function<double()>& draw) const;

 private:
  std::string root_;
  std::vector<FileOperation> operations_;
};

/// Writes the files below an empty directory.
void write_tree(const Tree& tree, const std::string& directory);

}  // namespace rematch::test
