#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"

namespace rematch {

/// Collects the problems of many records to throw them together: the first ones of each kind in
/// full, then the counts of all.
class ProblemList {
 public:
  /// @param path  of the file with the records
  /// @param fix  advice if not all problems are shown
  ProblemList(std::string path, std::string fix) : path_(std::move(path)), fix_(std::move(fix)) {}

  /// Adds the problems of a record; FILE in their advice becomes the path.
  void add(const UserError& error);
  int64_t num_records() const { return num_records_; }
  /// @throws UserError (data)
  void throw_if_any();

 private:
  Problem summary() const;

  std::string path_, fix_;
  std::vector<Problem> shown_;
  std::map<std::string, size_t> kinds_;  // problems by error
  size_t num_ = 0;
  int64_t num_records_ = 0;
};

/// The error of an image file with the record that names it.
UserError with_record(const UserError& error, const std::string& where);

}  // namespace rematch
