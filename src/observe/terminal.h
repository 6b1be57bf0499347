#pragma once
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "observe/progress.h"

namespace rematch {

/// Sole owner of the terminal: progress bars, warnings, tables. Progress and warnings go to the
/// error stream, results to the output stream. On a TTY progress is one line redrawn in place (at
/// most ten times a second), in a layout that is chosen when its phase begins (ProgressLayout).
/// Elsewhere it is an occasional plain line. Thread-safe.
class Terminal {
 public:
  struct Options {
    bool is_tty = false;     ///< of the error stream
    bool use_color = false;  ///< never without a TTY, never with NO_COLOR
    bool is_ascii = false;   ///< the locale names an encoding other than UTF-8
    int width = 100;         ///< columns
    /// shortest time between two plain lines of a phase without a TTY
    double plain_interval_s = 10;
  };
  Terminal(std::ostream& out, std::ostream& err, Options options);
  /// On stdout and stderr, as the environment suggests.
  static std::unique_ptr<Terminal> standard();
  /// Whether standard() uses colors.
  static bool shows_color();
  ~Terminal();
  Terminal(const Terminal&) = delete;

  /// Shows the state of a phase; the line ends with the time left, at the end with the time taken.
  /// A new phase opens a new bar.
  void progress(const Progress& state);
  /// Ends the current bar (its last state stays readable).
  void finish_progress();
  /// "warning: …", each distinct text once in the life of the terminal.
  void warn(const std::string& text);
  /// A status line on the error stream, e.g. "saved output/run/checkpoint-10".
  void say(const std::string& text);
  /// A table on the output stream, columns aligned; the first row is the header.
  void table(const std::vector<std::vector<std::string>>& rows);
  /// A line on the output stream.
  void print(const std::string& text);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace rematch
