#include "base/file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>
#include <vector>

#include "base/content_key.h"
#include "base/missing_path.h"
#include "base/out_of_resources.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;

// bytes that are read into memory at once; larger files are mapped
constexpr size_t kMaxReadBytes = size_t{1} << 31;
constexpr size_t kReadBlock = size_t{1} << 12;

fs::file_status status_of(const std::string& path) {
  std::error_code unseen;
  return fs::status(path, unseen);
}

std::string missing_path_advice(const std::string& path) {
  std::error_code error;  // the current directory may be gone
  const fs::path whole = fs::absolute(path, error).lexically_normal();
  return error || fs::path(path).is_absolute()
             ? "check the path"
             : fmt::format("check the path, which means {}", whole.string());
}

[[noreturn]] void fail(const std::string& doing, const std::string& path, int error_number) {
  const bool reads = doing == "read" || doing == "open" || doing == "map";
  const std::string windows = error_number == ENOENT ? windows_path_advice(path) : "";
  const std::string missing = error_number == ENOENT ? missing_path_advice(path) : "";
  const char* fix =
      !windows.empty()         ? windows.c_str()
      : error_number == ENOENT ? missing.c_str()
      : error_number == ENOSPC || error_number == EDQUOT
          ? "free disk space or choose another directory"
      : error_number == ENOMEM
          ? "raise the memory limit (ulimit -v, the container's), or close other programs"
      : error_number == EMFILE || error_number == ENFILE
          ? "raise the limit of open files (ulimit -n), or close other programs"
      : error_number == EFBIG
          ? "raise the file-size limit (ulimit -f), or choose another file system"
      : error_number == EISDIR       ? "give a file, not a directory"
      : error_number == ENAMETOOLONG ? "choose a shorter name"
      : error_number == EACCES || error_number == EROFS || error_number == EPERM
          ? reads ? "check the permissions (ls -l) of the file and of the directories above it"
                  : "check the permissions, or choose a directory you can write to"
          : "check the file and the disk it is on";
  const Problem problem = {.error = fmt::format("cannot {} {}", doing, path),
                           .where = path,
                           .what = std::strerror(error_number) +
                                   (error_number == ENOENT && reads ? existing_names(path) : ""),
                           .fix = fix};
  if (error_number == ENOMEM || error_number == EMFILE || error_number == ENFILE)
    throw OutOfResources(ErrorKind::kEnvironment, problem);
  throw UserError(ErrorKind::kEnvironment, problem);
}

struct OpenFile {
  int fd;
  ~OpenFile() { ::close(fd); }
};

[[noreturn]] void refuse(const std::string& path, const std::string& what, const char* fix) {
  throw environment_error(
      {.error = fmt::format("cannot read {}", path), .where = path, .what = what, .fix = fix});
}

[[noreturn]] void refuse_large(const std::string& path, size_t size_bytes) {
  refuse(path, fmt::format("{} bytes; at most {} are read at once", size_bytes, kMaxReadBytes),
         "check that this is the file you mean");
}

[[noreturn]] void refuse_special(const std::string& path, mode_t mode) {
  const char* kind = S_ISDIR(mode)    ? "a directory"
                     : S_ISFIFO(mode) ? "a pipe"
                     : S_ISSOCK(mode) ? "a socket"
                                      : "a device";
  refuse(path, fmt::format("it is {}, not a regular file", kind),
         "give a regular file; save the output of a pipe or device to one first");
}

// Opens a regular file for reading and gives its size. A pipe is opened without waiting for a
// writer, and refused: a read from it, from a terminal or from /dev/zero might never end.
int open_regular(const std::string& path, const std::string& doing, size_t& size_bytes) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  struct stat info{};
  if (fd < 0) {
    const int error_number = errno;
    // A socket cannot be opened at all.
    if (error_number == ENXIO && ::stat(path.c_str(), &info) == 0)
      refuse_special(path, info.st_mode);
    fail(doing, path, error_number);
  }
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    refuse_special(path, info.st_mode);
  }
  size_bytes = static_cast<size_t>(info.st_size);
  return fd;
}

void sync_path(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY);
  if (fd < 0) fail("open", path, errno);
  const int result = ::fsync(fd);
  const int error_number = errno;
  ::close(fd);
  // Some file systems cannot sync a directory; that is not the user's problem.
  if (result != 0 && error_number != EINVAL) fail("sync", path, error_number);
}

// The descriptor of this process that a path names, like 1 for /dev/stdout; -1 for a file.
int descriptor_of(const std::string& path) {
  if (path == "/dev/stdout") return STDOUT_FILENO;
  if (path == "/dev/stderr") return STDERR_FILENO;
  for (const std::string_view directory : {"/dev/fd/", "/proc/self/fd/"}) {
    int descriptor = -1;
    const char* const end = path.data() + path.size();
    if (path.starts_with(directory) &&
        std::from_chars(path.data() + directory.size(), end, descriptor).ptr == end)
      return descriptor;
  }
  return -1;
}

// Resolves a chain of symbolic links, up to a link that names a descriptor.
std::string without_links(std::string path) {
  std::error_code no_link;
  for (int hops = 0; hops < 40 && descriptor_of(path) < 0; ++hops) {
    const fs::path target = fs::read_symlink(path, no_link);
    if (no_link) break;
    path = fs::path(path).parent_path() / target;
  }
  return path;
}

// Something else than a regular file has this name: it is written to as it is.
bool is_special(const std::string& path) {
  return descriptor_of(path) >= 0 || (path_exists(path) && !is_file(path));
}

// Swaps two directories atomically; false where the file system does not support it.
bool swap_directories(const std::string& a, const std::string& b) {
  return ::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0;
}

// A name that leaves room for an ending, as most names do by themselves.
std::string with_room(const std::string& name) {
  constexpr size_t kLongest = 200;  // bytes, of 255 that a file system takes
  return name.size() <= kLongest ? name : content_hash_of(name);
}

// The file that is renamed to `path` in the end; "" where it is written to as it is.
std::string sibling_of(const std::string& path, const std::string& shown_as) {
  if (is_special(path)) return "";
  struct stat info{};
  if (::lstat(path.c_str(), &info) != 0 && errno == ENAMETOOLONG)
    fail("write", shown_as, ENAMETOOLONG);  // now, and not when it is renamed
  const fs::path file(path);
  const std::string name = with_room(file.filename().string());
  return (file.parent_path() / fmt::format("{}.tmp-{}", name, ::getpid())).string();
}

}  // namespace

std::string parent_of(const std::string& path) {
  const fs::path parent = fs::path(path).parent_path();
  return parent.empty() ? "." : parent.string();
}

std::string read_file(const std::string& path) {
  size_t size_bytes = 0;
  const OpenFile file{open_regular(path, "read", size_bytes)};
  if (size_bytes > kMaxReadBytes) refuse_large(path, size_bytes);
  // One byte more than its size shows the end of the file; some files, as those of /proc, say that
  // they are empty.
  std::string content(std::max<size_t>(size_bytes + 1, kReadBlock), '\0');
  size_t filled = 0;
  while (true) {
    const ssize_t count = ::read(file.fd, content.data() + filled, content.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("read", path, errno);
    if (count == 0) break;
    filled += static_cast<size_t>(count);
    if (filled > kMaxReadBytes) refuse_large(path, filled);
    if (filled == content.size()) content.resize(2 * filled);
  }
  content.resize(filled);
  return content;
}

MappedFile::MappedFile(const std::string& path) : path_(path) {
  const OpenFile file{open_regular(path, "open", size_)};
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.fd, 0);
  if (address == MAP_FAILED) fail("map", path, errno);
  data_ = static_cast<const char*>(address);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)),
      data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<char*>(data_), size_);
}

void MappedFile::drop(std::string_view part) const {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = static_cast<size_t>(part.data() - data_), first = begin / page * page;
  // If madvise fails, the pages stay in memory.
  static_cast<void>(
      ::madvise(const_cast<char*>(data_) + first, begin - first + part.size(), MADV_DONTNEED));
}

FileWriter::FileWriter(const std::string& path, const std::string& shown_as)
    : shown_as_(shown_as.empty() ? path : shown_as) {
  // A copy of a descriptor keeps its position, and what was written before.
  const int descriptor = descriptor_of(path);
  fd_ = descriptor >= 0 ? ::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
                        : ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (fd_ < 0) fail("write", shown_as_, errno);
}

FileWriter::~FileWriter() {
  if (fd_ >= 0) ::close(fd_);
}

void FileWriter::write(const void* data, size_t size_bytes) {
  const char* cursor = static_cast<const char*>(data);
  while (size_bytes > 0) {
    const ssize_t count = ::write(fd_, cursor, size_bytes);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail("write", shown_as_, errno);
    cursor += count;
    size_bytes -= static_cast<size_t>(count);
  }
}

void FileWriter::finish() {
  const int fd = std::exchange(fd_, -1);
  const int synced = ::fsync(fd);
  const int sync_error = errno;
  const int closed = ::close(fd);
  if (synced != 0 && sync_error != EINVAL) fail("write", shown_as_, sync_error);
  if (closed != 0) fail("write", shown_as_, errno);
}

StagedFile::StagedFile(const std::string& final_path)
    : final_path_(without_links(final_path)),
      temporary_path_(sibling_of(final_path_, final_path)),
      writer_(temporary_path_.empty() ? final_path_ : temporary_path_, final_path) {}

StagedFile::~StagedFile() {
  if (!temporary_path_.empty()) ::unlink(temporary_path_.c_str());
}

void StagedFile::commit() {
  writer_.finish();
  if (temporary_path_.empty()) return;
  if (::rename(temporary_path_.c_str(), final_path_.c_str()) != 0)
    fail("replace", final_path_, errno);
  temporary_path_.clear();
  sync_path(parent_of(final_path_));
}

void write_file(const std::string& path, std::string_view content) {
  FileWriter writer(path);
  writer.write(content);
  writer.finish();
}

void write_file_atomic(const std::string& path, std::string_view content) {
  StagedFile file(path);
  file.write(content);
  file.commit();
}

bool path_exists(const std::string& path) { return fs::exists(status_of(path)); }

bool is_file(const std::string& path) { return fs::is_regular_file(status_of(path)); }

bool is_dir(const std::string& path) { return fs::is_directory(status_of(path)); }

StagedDirectory::StagedDirectory(std::string final_path) : final_path_(std::move(final_path)) {
  while (final_path_.size() > 1 && final_path_.back() == '/') final_path_.pop_back();
  std::error_code error;
  // A link stays, and the directory that it leads to is replaced.
  if (fs::is_symlink(final_path_, error) && is_dir(final_path_))
    final_path_ = fs::canonical(final_path_).string();
  const std::string parent = parent_of(final_path_);
  make_directories(parent);
  temporary_path_ = fmt::format("{}/.tmp-{}-{}", parent,
                                with_room(fs::path(final_path_).filename().string()), ::getpid());
  fs::remove_all(temporary_path_, error);
  make_directories(temporary_path_);
}

StagedDirectory::~StagedDirectory() {
  if (committed_) return;
  std::error_code error;
  fs::remove_all(temporary_path_, error);
}

void StagedDirectory::commit() {
  for (const auto& entry : fs::recursive_directory_iterator(temporary_path_))
    sync_path(entry.path().string());
  sync_path(temporary_path_);
  std::error_code error;
  const bool replaces = path_exists(final_path_);
  std::string leftover = temporary_path_;
  // An exchange, so that a process killed here leaves the old directory or the new one under the
  // name.
  if (!replaces || !swap_directories(temporary_path_, final_path_)) {
    if (replaces) {  // a file system without exchange, e.g. NFS: two renames
      leftover += ".old";
      if (::rename(final_path_.c_str(), leftover.c_str()) != 0) fail("replace", final_path_, errno);
    }
    if (::rename(temporary_path_.c_str(), final_path_.c_str()) != 0)
      fail("create", final_path_, errno);
  }
  committed_ = true;
  sync_path(parent_of(final_path_));
  if (replaces) fs::remove_all(leftover, error);
}

void make_directories(const std::string& path) {
  std::error_code error;
  Strings made;
  for (fs::path at = path; !at.empty() && !path_exists(at); at = at.parent_path())
    made.push_back(at.string());
  fs::create_directories(path, error);
  if (error) fail("create directory", path, error.value());
  // A directory that power loss takes away takes with it what was synced inside. One that may only
  // be written to cannot be synced.
  for (const std::string& directory : made) {
    if (const std::string parent = parent_of(directory); ::access(parent.c_str(), R_OK) == 0)
      sync_path(parent);
  }
}

std::string join_path(const std::string& directory, const std::string& path) {
  return (fs::path(directory) / path).string();
}

}  // namespace rematch
