#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace rematch {

/// A file that grows by whole records. Each append is written at once, so a killed process loses
/// nothing. A failed append (full disk) is undone, so readers never see a partial record.
class AppendFile {
 public:
  /// Opens or creates `path` and its parent directories.
  /// @throws UserError (environment)
  explicit AppendFile(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Appends one record.
  /// @throws UserError (environment), e.g. on a full disk, and leaves the file unchanged
  void append(std::string_view record);
  /// Flushes all records to the device, safe from a power loss.
  /// @throws UserError (environment)
  void sync() const;
  /// @throws UserError (environment) if the path no longer leads to this file: it was removed,
  /// moved or replaced, and what is appended is lost
  void require_in_place() const;

  int64_t size_bytes() const { return size_bytes_; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  int fd_ = -1;
  int64_t size_bytes_ = 0;
};

}  // namespace rematch
