#pragma once
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "base/observe/progress.h"

namespace rematch {

/// Owns the terminal: progress bars, warnings, tables. Progress and warnings go to the error
/// stream, results to the output stream. On a TTY, progress is one line redrawn in place, at most
/// ten times a second (ProgressLayout). Elsewhere it is an occasional plain line. Thread-safe.
class Terminal {
 public:
  struct Options {
    bool is_tty = false;     ///< the error stream is a TTY
    bool use_color = false;  ///< never without a TTY, never with NO_COLOR
    bool is_ascii = false;   ///< the locale has an encoding other than UTF-8
    int width = 100;         ///< columns
    /// least time between two plain lines of a phase
    double plain_interval_s = 10;
  };
  Terminal(std::ostream& out, std::ostream& err, Options options);
  /// Makes the terminal of stdout and stderr, configured by the environment.
  static std::unique_ptr<Terminal> standard();
  /// Columns of a stream; 0 when it is not a terminal.
  static size_t columns(int descriptor);
  /// True when standard() uses colors.
  static bool shows_color();
  ~Terminal();
  Terminal(const Terminal&) = delete;

  /// Shows the state of a phase with the time left, at the end with the time taken. A new phase
  /// opens a new bar.
  void progress(const Progress& state);
  /// Ends the current bar; its last state stays visible.
  void finish_progress();
  /// Prints "warning: …"; each distinct text once.
  void warn(const std::string& text);
  void warn_all(const Strings& texts) {
    for (const std::string& text : texts) warn(text);
  }
  /// Prints a status line on the error stream, e.g. "saved output/run/checkpoint-10".
  void say(const std::string& text);
  /// Prints a table on the output stream; the first row is the header.
  void table(const std::vector<Strings>& rows);
  /// Prints a line on the output stream.
  void print(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
