#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/strings.h"

namespace rematch {

/// The whole content of a file.
/// @throws UserError (environment) naming the path and errno's text.
std::string read_file(const std::string& path);

/// Read-only memory map of a file; empty files give an empty view.
class MappedFile {
 public:
  /// @throws UserError (environment) when the file cannot be opened or mapped.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  MappedFile(const MappedFile&) = delete;

  std::string_view bytes() const { return {data_, size_}; }
  /// Gives the memory of a part back; it is read from the file again where it is used again.
  /// @param part  of bytes()
  void drop(std::string_view part) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
  const char* data_ = nullptr;
  size_t size_ = 0;
};

/// Sequential writer that checks every call and syncs on close: a full disk is an error, never a
/// short file.
class FileWriter {
 public:
  /// Creates or truncates `path`.
  /// @param shown_as  its name in errors, where it is not its own.
  /// @throws UserError (environment)
  explicit FileWriter(const std::string& path, const std::string& shown_as = "");
  /// Closes without syncing; an unfinished file may be left behind (StagedDirectory removes it).
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(const void* data, size_t size_bytes);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// Flushes to the device and closes.
  /// @throws UserError (environment), e.g. on a full disk.
  void finish();

 private:
  std::string shown_as_;
  int fd_ = -1;
};

/// A file that appears complete or not at all: what is written goes into a sibling, commit() syncs
/// and renames it to its final name (replacing an existing file). Without commit the sibling is
/// removed. A symbolic link stays, and the file it leads to is replaced. A pipe, a device or a
/// stream of this process, such as /dev/stdout, is written to as it is.
class StagedFile {
 public:
  /// @throws UserError (environment), also for a directory
  explicit StagedFile(const std::string& final_path);
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  void write(std::string_view text) { writer_.write(text); }
  void commit();

 private:
  std::string final_path_;
  std::string temporary_path_;  ///< empty: written in place, or committed
  FileWriter writer_;
};

/// Writes a file with a FileWriter. Not atomic.
/// @throws UserError (environment)
void write_file(const std::string& path, std::string_view content);

/// Replaces `path` with `content` so that a reader sees the old file or the new one, whole
/// (StagedFile).
void write_file_atomic(const std::string& path, std::string_view content);

/// A directory that appears complete or not at all: files are written under path(), commit() syncs
/// and renames it to its final name (replacing an existing one). Without commit the temporary
/// directory is removed.
class StagedDirectory {
 public:
  /// @param final_path  where the directory ends up; its parents are created. A link to a
  ///     directory stays, and what it leads to is replaced.
  /// @throws UserError (environment)
  explicit StagedDirectory(std::string final_path);
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  /// The path to write to until commit (a hidden sibling `.tmp-NAME-PID` of the final path).
  const std::string& path() const { return temporary_path_; }
  void commit();

 private:
  std::string final_path_;
  std::string temporary_path_;
  bool committed_ = false;
};

/// True if something is there: a file or a directory, a regular file, a directory; links are
/// followed. False where that cannot be seen.
bool path_exists(const std::string& path);
bool is_file(const std::string& path);
bool is_dir(const std::string& path);

/// Creates a directory with its parents.
/// @throws UserError (environment) with errno's text.
void make_directories(const std::string& path);

/// `path` itself when absolute, else `directory`/`path`.
std::string join_path(const std::string& directory, const std::string& path);

/// The directory that holds a path: "." for a name alone.
std::string parent_of(const std::string& path);

}  // namespace rematch
