#pragma once
#include <cstdint>
#include <initializer_list>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/file.h"

namespace rematch {

/// The files that a command reads, which nothing it writes may replace.
class InputFiles {
 public:
  InputFiles() = default;
  InputFiles(std::initializer_list<std::string> paths);

  /// Adds a regular file. Ignores a path that is missing or not a regular file.
  void add(const std::string& path);
  /// Refuses `out` if it is one of these files under any name, also by a link.
  /// @throws UserError (configuration)
  void refuse(const std::string& out) const;

 private:
  std::set<std::pair<uint64_t, uint64_t>> files_;  ///< device and inode
};

/// A file that a command writes for its user: it appears complete or not at all (StagedFile), and
/// it never replaces a file that the command reads. Without commit() the path stays as it was.
/// Commands open it before their work, so that a bad path costs no time.
class OutputFile {
 public:
  /// @throws UserError (configuration) for a path among `inputs` and for the log or configuration
  /// of a run, (environment) as StagedFile
  OutputFile(const std::string& path, const InputFiles& inputs);

  void write(std::string_view text) { file_.write(text); }
  void commit() { file_.commit(); }
  /// True when commit() replaces, or has replaced, an earlier file.
  bool replaces_earlier() const { return replaces_earlier_; }

 private:
  bool replaces_earlier_;
  StagedFile file_;
};

/// Opens an OutputFile, writes `content` and commits.
/// @return true if it replaced an earlier file
bool write_output(const std::string& path, const InputFiles& inputs, std::string_view content);

}  // namespace rematch
