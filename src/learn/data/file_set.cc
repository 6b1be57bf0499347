#include "learn/data/file_set.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "base/content_key.h"

namespace rematch {
namespace {

constexpr int64_t kEndBytes = 16 << 10;

/// Hashes the first and last bytes; nullopt if the file cannot be read.
std::optional<std::string> hash_ends(const std::string& path, int64_t size) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const auto first = static_cast<size_t>(std::min(size, kEndBytes));
  const auto last = static_cast<size_t>(std::clamp<int64_t>(size - kEndBytes, 0, kEndBytes));
  std::string bytes(first + last, '\0');
  const bool is_read = ::pread(file, bytes.data(), first, 0) == static_cast<ssize_t>(first) &&
                       ::pread(file, bytes.data() + first, last,
                               size - static_cast<int64_t>(last)) == static_cast<ssize_t>(last);
  ::close(file);
  if (!is_read) return std::nullopt;
  return content_hash_of(bytes);
}

}  // namespace

void FileSet::insert(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return;
  if (files_.insert({info.st_dev, info.st_ino}).second)
    by_size_[info.st_size].paths.push_back(path);
}

bool FileSet::contains(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return false;
  if (files_.contains({info.st_dev, info.st_ino})) return true;
  const auto same = by_size_.find(info.st_size);
  if (same == by_size_.end()) return false;
  SameSize& known = same->second;
  for (const std::string& other : known.paths) {
    if (const auto hash = hash_ends(other, info.st_size)) known.hashes.insert(*hash);
  }
  known.paths.clear();
  const auto hash = hash_ends(path, info.st_size);
  return hash && known.hashes.contains(*hash);
}

}  // namespace rematch
