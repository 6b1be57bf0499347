#pragma once
#include <cstdint>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

/// The state of a long-running task.
struct Progress {
  std::string phase;  ///< "train", "evaluate", "rollout" …
  int64_t done = 0;
  int64_t total = 0;
  /// e.g. {"loss", "1.23"}, shown in order
  std::vector<std::pair<std::string, std::string>> fields;
};

/// Sole owner of the terminal: progress bars, warnings, tables. Progress and warnings go to the
/// error stream, results to the output stream. On a TTY progress is one line redrawn in place (at
/// most ten times a second), never wider than the screen: the bar shrinks and goes first, then
/// fields that do not fit, last ones first. Elsewhere it is an occasional plain line. Thread-safe.
class Terminal {
 public:
  struct Options {
    bool is_tty = false;     ///< of the error stream
    bool use_color = false;  ///< never without a TTY, never with NO_COLOR
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

  /// Shows the state of a phase; the bar carries the percentage, elapsed time and time left. A new
  /// phase opens a new bar.
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
