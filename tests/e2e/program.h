#pragma once
#include <string>
#include <vector>

#include "support/capture.h"
#include "support/paths.h"

namespace rematch::test {

/// The program itself on the tiny golden model and the golden scenes, in a temporary directory.
class Program {
 public:
  Program();
  /// Writes a configuration: stage 2 on the golden scenes with two steps, then `lines` merged over
  /// it (YAML text, may be empty).
  std::string config(const std::string& lines = "") const;
  /// `rematch ARGUMENTS`, in the temporary directory.
  ProcessResult run(const std::string& arguments, const std::string& input = "") const;
  /// `rematch-stages stage ARGUMENTS`, in the temporary directory.
  ProcessResult run_stage(const std::string& arguments, const std::string& input) const;
  /// Runs a bash script in the temporary directory. `$R` is the program; `steps N` waits until the
  /// run has logged N lines.
  ProcessResult script(const std::string& text) const;
  const TempDir& dir() const { return dir_; }
  std::string run_dir() const { return dir_.file("out/run"); }
  /// logging.jsonl without what a clock decides.
  std::string log_without_times() const;
  /// The golden model directory.
  static std::string model() { return source_path("tests/golden/model/tiny_tied"); }
  static std::string golden(const std::string& name) {
    return source_path("tests/golden/e2e/" + name);
  }

 private:
  ProcessResult start(const std::string& program, const std::string& arguments,
                      const std::string& input) const;

  TempDir dir_;
};

}  // namespace rematch::test
