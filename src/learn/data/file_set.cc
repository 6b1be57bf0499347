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
  if (files_.emplace(FileId(info.st_dev, info.st_ino), path).second)
    by_size_[info.st_size].paths.push_back(path);
}

std::string FileSet::find(const std::string& path) {
  struct stat info{};
  if (::stat(path.c_str(), &info) != 0) return "";
  const FileId id(info.st_dev, info.st_ino);
  if (const auto known = files_.find(id); known != files_.end()) return known->second;
  const auto same = by_size_.find(info.st_size);
  if (same == by_size_.end()) return "";
  auto& [paths, found] = same->second;
  for (const std::string& other : paths) {
    if (const auto hash = hash_ends(other)) found.emplace(*hash, other);
  }
  paths.clear();
  const auto hash = hash_ends(path);
  const auto copy = hash ? found.find(*hash) : found.end();
  return copy == found.end() ? "" : files_[id] = copy->second;
}

std::string FileSet::add(const std::string& path) {
  std::string known = find(path);
  if (known.empty()) insert(path);
  return known.empty() ? path : known;
}

}  // namespace rematch
