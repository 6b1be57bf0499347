#include "learn/data/file_set.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/content_key.h"
#include "base/error.h"
#include "base/file.h"

namespace rematch {
namespace {

constexpr size_t kEndBytes = size_t{16} << 10;

/// Hashes the first and last bytes; nullopt if the file cannot be read.
std::optional<std::string> hash_ends(const std::string& path) {
  try {
    const MappedFile file(path);
    const std::string_view bytes = file.bytes();
    std::string ends(bytes.substr(0, kEndBytes));
    ends += bytes.substr(std::max(bytes.size() - ends.size(), ends.size()));
    return content_hash_of(ends);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

}  // namespace

FileId file_id(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return {0, std::hash<std::string>{}(path)};
  return {info.st_dev, info.st_ino};
}

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
    if (const auto hash = hash_ends(other)) known.hashes.insert(*hash);
  }
  known.paths.clear();
  const auto hash = hash_ends(path);
  return hash && known.hashes.contains(*hash);
}

}  // namespace rematch
