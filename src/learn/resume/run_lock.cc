#include "learn/resume/run_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/json.h"

namespace rematch {
namespace {

constexpr size_t kMaxRecordBytes = 4096;  // bytes

std::string make_record() {
  const std::time_t now = std::time(nullptr);
  Json record;
  record["host"] = host_name();
  record["pid"] = ::getpid();
  record["started"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
  return python_json(record) + "\n";
}

std::string read_record(int fd) {
  std::string text(kMaxRecordBytes, '\0');
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  text.resize(count > 0 ? static_cast<size_t>(count) : 0);
  return text;
}

/// @param record  of the other run, as make_record() writes it; may be damaged
[[noreturn]] void refuse(const std::string& run_dir, const std::string& record) {
  std::string other = "the record of the other run cannot be read";
  try {
    const Json json = parse_json(record, "");
    other = fmt::format("process {} on {}, started {}", json.at("pid").get<int64_t>(),
                        json.at("host").get<std::string>(), json.at("started").get<std::string>());
  } catch (const std::exception&) {  // says less
  }
  throw UserError(ErrorKind::kEnvironment,
                  {.error = "another run is using this run directory",
                   .where = run_dir,
                   .what = other,
                   .fix = "wait for it or stop it, or choose another directory (training.run_name, "
                          "training.add_version: true)"});
}

[[noreturn]] void fail(const std::string& path, int error_number) {
  throw UserError(
      ErrorKind::kEnvironment,
      {.error = fmt::format("cannot write {}", path),
       .where = path,
       .what = std::strerror(error_number),
       .fix =
           "check the permissions and the disk, or set training.output_dir to another directory"});
}

// Locks for the process, not for the descriptor, so that child processes of a rollout engine do not
// inherit the lock.
int try_lock(int fd) {
  struct flock lock{};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  return ::fcntl(fd, F_SETLK, &lock) == 0 ? 0 : errno;
}

}  // namespace

void RunLock::require_free(const std::string& run_dir) {
  const int fd = ::open(join_path(run_dir, ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  const bool is_locked = ::fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
  const std::string other = read_record(fd);
  ::close(fd);
  if (is_locked) refuse(run_dir, other);
}

RunLock::RunLock(const std::string& run_dir) {
  const std::string path = join_path(run_dir, ".lock");
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) fail(path, errno);
  try {
    const int lock_error = try_lock(fd_);
    if (lock_error == EACCES || lock_error == EAGAIN) refuse(run_dir, read_record(fd_));
    const std::string record = make_record();
    if (::ftruncate(fd_, 0) != 0) fail(path, errno);
    errno = ENOSPC;  // for a short write
    if (::pwrite(fd_, record.data(), record.size(), 0) != static_cast<ssize_t>(record.size()))
      fail(path, errno);
  } catch (...) {
    ::close(std::exchange(fd_, -1));
    throw;
  }
}

RunLock::~RunLock() {
  // The file is not removed: a run that has already opened it would lock a file that no one else
  // can open.
  [[maybe_unused]] const int emptied = ::ftruncate(fd_, 0);
  ::close(fd_);
}

}  // namespace rematch
