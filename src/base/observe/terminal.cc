#include "base/observe/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

#include "base/observe/columns.h"
#include "base/terminal_text.h"
#include "base/text.h"

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

/// True when the error stream is a terminal that can move its cursor.
bool is_screen() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && term != nullptr && std::string(term) != "dumb";
}

/// True when the locale has an encoding other than UTF-8. Containers often set no locale; then
/// UTF-8 is assumed.
bool is_ascii_locale() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string locale = lower_case(value);
    return locale.find("utf-8") == std::string::npos && locale.find("utf8") == std::string::npos;
  }
  return false;
}

}  // namespace

struct Terminal::Impl {
  /// Start of a phase, to estimate the time left.
  struct Phase {
    Clock::time_point start;
    int64_t done_at_start = 0;
    int64_t last_done = 0;
    ProgressLayout layout;
  };

  std::ostream& out;
  std::ostream& err;
  Options options;
  std::mutex mutex;
  std::set<std::string> warned;
  std::map<std::string, Phase> phases;
  std::string current_phase;  ///< empty when no bar is open
  Progress latest;            ///< of the current phase
  bool latest_is_shown = true;
  bool line_is_open = false;  ///< TTY: the cursor is at the end of a bar
  Clock::time_point last_shown;

  Impl(std::ostream& out_stream, std::ostream& err_stream, Options terminal_options)
      : out(out_stream), err(err_stream), options(terminal_options) {}

  Phase begin(const Progress& state, Clock::time_point now) const {
    // Keep one column free: a full line would wrap and could not be redrawn.
    const auto width = static_cast<size_t>(std::max(options.width - 1, 1));
    return {.start = now,
            .done_at_start = state.done,
            .last_done = state.done,
            .layout = ProgressLayout(state, width, options.is_ascii)};
  }

  /// Seconds since the phase began, and seconds left (negative: unknown).
  std::pair<double, double> times_s(const Progress& state, Clock::time_point now) const {
    const Phase& phase = phases.at(state.phase);
    const double elapsed = seconds_between(phase.start, now);
    const int64_t moved = state.done - phase.done_at_start;
    if (moved <= 0 || state.done >= state.total) return {elapsed, -1};
    return {elapsed,
            elapsed / static_cast<double>(moved) * static_cast<double>(state.total - state.done)};
  }

  void clear_line() {
    if (line_is_open) err << "\r\033[K";
    line_is_open = false;
  }

  void show(Clock::time_point now) {
    const auto [elapsed, left] = times_s(latest, now);
    if (options.is_tty) {
      err << "\r\033[K" << phases.at(latest.phase).layout.line(latest, elapsed, left) << std::flush;
      line_is_open = true;
    } else {
      err << plain_progress(latest, elapsed, left) + "\n" << std::flush;
    }
    latest_is_shown = true;
    last_shown = now;
  }

  void finish() {
    if (current_phase.empty()) return;
    if (!latest_is_shown) show(Clock::now());
    if (line_is_open) err << '\n' << std::flush;
    line_is_open = false;
    current_phase.clear();
  }

  /// Writes above the bar and draws the bar again.
  void write_line(std::ostream& stream, const std::string& text) {
    const bool had_bar = line_is_open;
    clear_line();
    if (had_bar) err << std::flush;
    stream << text << '\n' << std::flush;
    if (had_bar) show(Clock::now());
  }
};

Terminal::Terminal(std::ostream& out, std::ostream& err, Options options)
    : impl_(std::make_unique<Impl>(out, err, options)) {
  if (!options.is_tty) impl_->options.use_color = false;
}

Terminal::~Terminal() { finish_progress(); }

bool Terminal::shows_color() {
  const char* no_color = std::getenv("NO_COLOR");
  return is_screen() && (no_color == nullptr || *no_color == '\0');
}

size_t Terminal::columns(int descriptor) {
  winsize size{};
  return ::isatty(descriptor) != 0 && ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::unique_ptr<Terminal> Terminal::standard() {
  Options options;
  options.is_tty = is_screen();
  options.use_color = shows_color();
  options.is_ascii = is_ascii_locale();
  if (const size_t width = columns(STDERR_FILENO); width > 0)
    options.width = static_cast<int>(width);
  return std::make_unique<Terminal>(std::cout, std::cerr, options);
}

void Terminal::progress(const Progress& state) {
  const std::lock_guard lock(impl_->mutex);
  const Clock::time_point now = Clock::now();
  const bool is_new_bar = impl_->current_phase != state.phase;
  if (is_new_bar) impl_->finish();
  if (state.done == state.total && state == impl_->latest && impl_->latest_is_shown && !is_new_bar)
    return;  // the end is shown once
  const auto known = impl_->phases.find(state.phase);
  // A lower count means that the work has restarted.
  if (known == impl_->phases.end() || state.done < known->second.last_done) {
    impl_->phases.insert_or_assign(state.phase, impl_->begin(state, now));
  } else {
    known->second.last_done = state.done;
  }
  impl_->current_phase = state.phase;
  impl_->latest = state;
  impl_->latest_is_shown = false;
  const double pause_s = impl_->options.is_tty ? 0.1 : impl_->options.plain_interval_s;
  if (is_new_bar || state.done == state.total || seconds_between(impl_->last_shown, now) >= pause_s)
    impl_->show(now);
}

void Terminal::finish_progress() {
  const std::lock_guard lock(impl_->mutex);
  const std::string phase = impl_->current_phase;
  impl_->finish();
  impl_->phases.erase(phase);
}

void Terminal::warn(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  if (!impl_->warned.insert(text).second) return;
  const std::string heading = "warning:";
  std::string line = heading + " " + printable_lines(text);
  const Options& options = impl_->options;
  if (options.is_tty) line = wrapped(line, 2, static_cast<size_t>(options.width));
  if (options.use_color) line = "\033[33m" + heading + "\033[0m" + line.substr(heading.size());
  impl_->write_line(impl_->err, line);
}

void Terminal::say(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  impl_->write_line(impl_->err, printable_lines(text));
}

void Terminal::print(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  impl_->write_line(impl_->out, printable_lines(text));
}

void Terminal::table(const std::vector<Strings>& rows) { print(table_text(rows)); }

}  // namespace rematch
