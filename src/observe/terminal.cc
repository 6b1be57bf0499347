#include "observe/terminal.h"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <map>
#include <mutex>
#include <set>

namespace rematch {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

int64_t whole_seconds(double seconds) {
  return static_cast<int64_t>(std::clamp(seconds, 0.0, 359999.0) + 0.5);
}

/// 75 → "1:15", 3675 → "1:01:15".
std::string duration_text(double seconds) {
  const int64_t whole = whole_seconds(seconds);
  if (whole >= 3600)
    return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
  return fmt::format("{}:{:02}", whole / 60, whole % 60);
}

/// The same in at most five columns: "12:10", "1h12".
std::string short_duration(double seconds) {
  const int64_t whole = whole_seconds(seconds);
  return whole < 3600 ? duration_text(seconds)
                      : fmt::format("{}h{:02}", whole / 3600, whole / 60 % 60);
}

bool is_continuation(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) == 0x80; }

/// Characters of UTF-8 text (each taken as one column wide).
size_t width_of(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(byte); }));
}

std::string clipped(const std::string& text, size_t width) {
  size_t columns = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (!is_continuation(text[i]) && columns++ == width) return text.substr(0, i);
  }
  return text;
}

bool is_number(const std::string& cell) {
  if (cell.empty()) return false;
  char* end = nullptr;
  std::strtod(cell.c_str(), &end);
  return *end == '\0' || (*end == '%' && end[1] == '\0') ||
         (*end == ' ' && end[1] == '%' && end[2] == '\0');
}

/// True when the error stream is a terminal that can move its cursor.
bool is_screen() {
  const char* term = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) != 0 && term != nullptr && std::string(term) != "dumb";
}

std::string fields_text(const Progress& state) {
  std::string text;
  for (const auto& [name, value] : state.fields) text += fmt::format("  {} {}", name, value);
  return text;
}

}  // namespace

struct Terminal::Impl {
  /// When a phase started, to estimate the time left.
  struct Phase {
    Clock::time_point start;
    int64_t done_at_start = 0;
    int64_t last_done = 0;
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

  /// Seconds since the phase began, and those it will take from now on (negative: unknown).
  std::pair<double, double> times_s(const Progress& state, Clock::time_point now) const {
    const Phase& phase = phases.at(state.phase);
    const double elapsed = seconds_between(phase.start, now);
    const int64_t moved = state.done - phase.done_at_start;
    if (moved <= 0 || state.done >= state.total) return {elapsed, -1};
    return {elapsed,
            elapsed / static_cast<double>(moved) * static_cast<double>(state.total - state.done)};
  }

  std::string times(const Progress& state, Clock::time_point now) const {
    const auto [elapsed, left] = times_s(state, now);
    return duration_text(elapsed) + (left < 0 ? "" : fmt::format(", {} left", duration_text(left)));
  }

  std::string bar(const Progress& state, Clock::time_point now, size_t columns) const {
    const double part =
        state.total > 0
            ? std::clamp(static_cast<double>(state.done) / static_cast<double>(state.total), 0.0,
                         1.0)
            : 0.0;
    const auto filled = static_cast<size_t>(part * static_cast<double>(columns));
    return fmt::format("{} [{}{}] {}/{} {:3.0f}%{}  {}", state.phase, std::string(filled, '#'),
                       std::string(columns - filled, '.'), state.done, state.total, part * 100,
                       fields_text(state), times(state, now));
  }

  /// The state in one line of at most `width` columns: with a bar where there is room for one, else
  /// closer together, and with as many fields as fit.
  std::string line(const Progress& state, Clock::time_point now, size_t width) const {
    constexpr size_t kMostBar = 24, kLeastBar = 8;
    const size_t bare = width_of(bar(state, now, 0));
    if (bare + kLeastBar <= width) return bar(state, now, std::min(kMostBar, width - bare));
    const auto [elapsed, left] = times_s(state, now);
    const std::string end =
        " " + short_duration(elapsed) + (left < 0 ? "" : "<" + short_duration(left));
    std::string text = fmt::format("{} {}/{}", state.phase, state.done, state.total);
    for (const auto& [name, value] : state.fields) {
      const std::string field = " " + name + " " + value;
      if (width_of(text) + width_of(field) + width_of(end) <= width) text += field;
    }
    return clipped(text + end, width);
  }

  void clear_line() {
    if (line_is_open) err << "\r\033[K";
    line_is_open = false;
  }

  void show(Clock::time_point now) {
    if (options.is_tty) {
      // One column stays free: a full line would wrap and could not be redrawn.
      err << "\r\033[K" << line(latest, now, static_cast<size_t>(std::max(options.width - 1, 1)))
          << std::flush;
      line_is_open = true;
    } else {
      err << fmt::format("{} {}/{}{}  {}\n", latest.phase, latest.done, latest.total,
                         fields_text(latest), times(latest, now))
          << std::flush;
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

std::unique_ptr<Terminal> Terminal::standard() {
  Options options;
  options.is_tty = is_screen();
  options.use_color = shows_color();
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    options.width = size.ws_col;
  return std::make_unique<Terminal>(std::cout, std::cerr, options);
}

void Terminal::progress(const Progress& state) {
  const std::lock_guard lock(impl_->mutex);
  const Clock::time_point now = Clock::now();
  const bool is_new_bar = impl_->current_phase != state.phase;
  if (is_new_bar) impl_->finish();
  const auto known = impl_->phases.find(state.phase);
  // A lower count means that the work has restarted.
  if (known == impl_->phases.end() || state.done < known->second.last_done) {
    impl_->phases[state.phase] = {
        .start = now, .done_at_start = state.done, .last_done = state.done};
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
  impl_->write_line(impl_->err,
                    (impl_->options.use_color ? "\033[33mwarning:\033[0m " : "warning: ") + text);
}

void Terminal::say(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  impl_->write_line(impl_->err, text);
}

void Terminal::print(const std::string& text) {
  const std::lock_guard lock(impl_->mutex);
  impl_->write_line(impl_->out, text);
}

void Terminal::table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t column = 0; column < row.size(); ++column)
      widths[column] = std::max(widths[column], width_of(row[column]));
  }
  std::string text;
  for (size_t i = 0; i < rows.size(); ++i) {
    std::string line;
    for (size_t column = 0; column < rows[i].size(); ++column) {
      const std::string& cell = rows[i][column];
      const std::string padding(widths[column] - width_of(cell), ' ');
      // Headers of numeric columns are aligned like their numbers.
      const bool right = column > 0 && (is_number(cell) || i == 0);
      line += (column > 0 ? "  " : "") + (right ? padding + cell : cell + padding);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    if (i == 0) {
      size_t total = widths.empty() ? 0 : 2 * (widths.size() - 1);
      for (const size_t width : widths) total += width;
      text += std::string(total, '-') + "\n";
    }
  }
  if (!text.empty()) text.pop_back();
  print(text);
}

}  // namespace rematch
