#include "base/observe/append_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "base/file.h"

namespace rematch {
namespace {

[[noreturn]] void fail(const std::string& doing, const std::string& path, int error_number) {
  throw environment_error(
      {.error = fmt::format("cannot {} {}", doing, path),
       .where = path,
       .what = std::strerror(error_number),
       .fix = error_number == ENOSPC ? "free disk space, or set training.output_dir to another disk"
                                     : "check the permissions, or set training.output_dir to a "
                                       "directory you can write to"});
}

}  // namespace

AppendFile::AppendFile(const std::string& path) : path_(path) {
  make_directories(parent_of(path));
  fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd_ < 0) fail("write", path_, errno);
  struct stat info{};
  if (::fstat(fd_, &info) == 0) size_bytes_ = info.st_size;
}

AppendFile::~AppendFile() {
  if (fd_ >= 0) ::close(fd_);
}

void AppendFile::sync() const {
  // Pipes and some file systems cannot be synced, and need not be.
  if (::fsync(fd_) != 0 && errno != EINVAL && errno != EROFS) fail("write to", path_, errno);
}

void AppendFile::require_in_place() const {
  struct stat here{}, there{};
  if (::fstat(fd_, &here) != 0) fail("write to", path_, errno);
  const bool exists = ::stat(path_.c_str(), &there) == 0;
  if (exists && here.st_dev == there.st_dev && here.st_ino == there.st_ino) return;
  throw environment_error(
      {.error = "a file of the run is gone",
       .where = path_,
       .what = exists ? "another file has its name" : "it was removed or moved",
       .fix = "leave a run's directory in place until the run has ended; "
              "training.resume_from_checkpoint: latest continues from what was saved"});
}

void AppendFile::append(std::string_view record) {
  size_t written = 0;
  while (written < record.size()) {
    const ssize_t count = ::write(fd_, record.data() + written, record.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      const int error_number = errno;
      // A file that cannot be truncated (pipe, device) keeps no partial record.
      [[maybe_unused]] const int result = ::ftruncate(fd_, size_bytes_);
      fail("write to", path_, error_number);
    }
    written += static_cast<size_t>(count);
  }
  size_bytes_ += std::ssize(record);
}

}  // namespace rematch
