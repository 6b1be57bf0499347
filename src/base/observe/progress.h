#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/strings.h"

namespace rematch {

/// A number next to a progress bar.
struct ProgressField {
  std::string name;       ///< e.g. "loss"
  std::string value;      ///< e.g. "1.23"; empty = not known yet
  size_t width = 5;       ///< most columns of the value
  bool is_unit = false;   ///< the name is a unit: "0.17 s/step" instead of "loss 1.23"
  bool is_extra = false;  ///< shown only on a wide screen

  bool operator==(const ProgressField&) const = default;
};

/// The state of a long-running task.
struct Progress {
  std::string phase;  ///< "train", "answers", "predict" …
  int64_t done = 0;
  int64_t total = 0;
  std::vector<ProgressField> fields;  ///< in display order; the same in every state of a phase

  bool operator==(const Progress&) const = default;
};

/// Layout of a progress line, fixed at the start of a phase: the bar keeps its place and length,
/// every field its column.
class ProgressLayout {
 public:
  /// @param width  most columns of the line.
  /// @param is_ascii  draw the bar in ASCII
  ProgressLayout(const Progress& first, size_t width, bool is_ascii);
  /// @param elapsed_s  since the phase began.
  /// @param left_s  negative = not known
  std::string line(const Progress& state, double elapsed_s, double left_s) const;

 private:
  std::string bar(double part) const;

  size_t width_;
  bool is_ascii_;
  size_t bar_cells_ = 0;  ///< 0 = no room for a bar
  size_t count_width_ = 0;
  Strings shown_;  ///< names of the fields that fit
};

/// Formats a state as a plain line, with every known field.
std::string plain_progress(const Progress& state, double elapsed_s, double left_s);

}  // namespace rematch
