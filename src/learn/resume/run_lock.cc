#include "learn/resume/run_lock.h"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/host_memory.h"
#include "base/json.h"
#include "base/text.h"

namespace rematch {
namespace {

constexpr size_t kMaxRecordBytes = 4096;  // bytes

// Content of a small file of /proc without its final newline; empty if there is no such file.
std::string read_proc(const std::string& path) {
  try {
    return python_strip(read_file(path));
  } catch (const UserError&) {
    return "";
  }
}

/// Identifies this machine and its process namespace. Host names can change, and containers share
/// them.
std::string machine_id() {
  std::array<char, 64> space{};
  const ssize_t length = ::readlink("/proc/self/ns/pid", space.data(), space.size() - 1);
  return read_proc("/proc/sys/kernel/random/boot_id") + " " +
         std::string(space.data(), length > 0 ? length : 0);
}

std::string make_record() {
  const std::time_t now = std::time(nullptr);
  Json record;
  record["host"] = host_name();
  record["pid"] = ::getpid();
  record["started"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(now));
  record["machine"] = machine_id();
  record["start_ticks"] = start_ticks(::getpid());
  return python_json(record) + "\n";
}

std::string read_record(int fd) {
  std::string text(kMaxRecordBytes, '\0');
  const ssize_t count = ::pread(fd, text.data(), text.size(), 0);
  text.resize(count > 0 ? count : 0);
  return text;
}

// Another run's record; null if it is missing or unreadable.
Json parse_record(const std::string& text) {
  try {
    Json record = text.empty() ? Json() : parse_json(text, "");
    for (const char* key : {"host", "started", "machine", "start_ticks"}) {
      if (!record.is_object() || !record.contains(key) || !record[key].is_string()) return {};
    }
    return record.contains("pid") && record["pid"].is_number_integer() ? record : Json();
  } catch (const UserError&) {
    return {};
  }
}

bool may_run(const Json& record) {
  if (record.is_null()) return false;
  if (record["machine"] != machine_id()) return true;  // not visible from here
  return start_ticks(record["pid"].get<int64_t>()) == record["start_ticks"].get<std::string>();
}

[[noreturn]] void refuse(const std::string& run_dir, const Json& record, bool is_sure) {
  const std::string other =
      record.is_null()
          ? "the record of the other run cannot be read"
          : fmt::format("process {} on {}, started {}", record["pid"].get<int64_t>(),
                        record["host"].get<std::string>(), record["started"].get<std::string>());
  throw environment_error(
      {.error = is_sure ? "another run is using this run directory"
                        : "another run may be using this run directory",
       .where = run_dir,
       .what = other,
       .fix = fmt::format(
           "wait for it or stop it, or choose another directory (training.run_name, "
           "training.add_version: true){}",
           is_sure ? "" : fmt::format("; if that run has ended, remove {}/.lock", run_dir))});
}

[[noreturn]] void fail(const std::string& path, int error_number) {
  throw environment_error(
      {.error = fmt::format("cannot write {}", path),
       .where = path,
       .what = std::strerror(error_number),
       .fix = "check the permissions and the disk, or choose another training.output_dir"});
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

// Fields are counted from the last ')', because a process name may contain anything.
std::string start_ticks(int64_t pid) {
  const std::string stat = read_proc(fmt::format("/proc/{}/stat", pid));
  const size_t name_end = stat.rfind(") ");
  if (name_end == std::string::npos || stat[name_end + 2] == 'Z') return "";
  const Strings fields = split(stat.substr(name_end + 2), ' ');
  return fields.size() > 19 ? fields[19] : "";
}

void RunLock::require_free(const std::string& run_dir) {
  const int fd = ::open(join_path(run_dir, ".lock").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return;
  struct flock lock{};
  lock.l_type = F_WRLCK;
  const bool is_known = ::fcntl(fd, F_GETLK, &lock) == 0;
  const Json other = parse_record(read_record(fd));
  ::close(fd);
  if (is_known ? lock.l_type != F_UNLCK : may_run(other)) refuse(run_dir, other, is_known);
}

RunLock::RunLock(const std::string& run_dir) {
  const std::string path = join_path(run_dir, ".lock");
  fd_ = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
  if (fd_ < 0) fail(path, errno);
  try {
    const int lock_error = try_lock(fd_);
    const Json other = parse_record(read_record(fd_));
    if (lock_error == EACCES || lock_error == EAGAIN) refuse(run_dir, other, true);
    if (lock_error != 0 && may_run(other)) refuse(run_dir, other, false);
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
