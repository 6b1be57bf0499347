#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace rematch {

/// A file that grows by whole records: each append reaches the system at once, so a killed process
/// loses nothing it has written, and a failed append (full disk) is undone, so that readers never
/// see a partial record.
class AppendFile {
 public:
  /// Opens or creates `path`, parents included. @throws UserError (environment)
  explicit AppendFile(const std::string& path);
  ~AppendFile();
  AppendFile(const AppendFile&) = delete;
  AppendFile& operator=(const AppendFile&) = delete;

  /// Appends one record. @throws UserError (environment), e.g. on a full disk; the file is then
  /// unchanged
  void append(std::string_view record);
  /// Waits until all records are on the device: from then on a loss of power takes none. @throws
  /// UserError (environment)
  void sync() const;

  /// Drops what the file begins with. Readers see the old file or the new one, whole.
  void drop_first(int64_t num_bytes);

  int64_t size_bytes() const { return size_bytes_; }
  const std::string& path() const { return path_; }

 private:
  void open();
  std::string path_;
  int fd_ = -1;
  int64_t size_bytes_ = 0;
};

}  // namespace rematch
