#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

/// A number next to a progress bar.
struct ProgressField {
  std::string name;       ///< e.g. "loss"
  std::string value;      ///< e.g. "1.23"; empty = not known yet
  size_t width = 5;       ///< columns that the value never exceeds
  bool is_unit = false;   ///< the name is a unit: "0.17 s/step" instead of "loss 1.23"
  bool is_extra = false;  ///< only where the screen is wide enough for it
};

/// The state of a long-running task.
struct Progress {
  std::string phase;  ///< "train", "answers", "predict" …
  int64_t done = 0;
  int64_t total = 0;
  std::vector<ProgressField> fields;  ///< shown in order; the same ones in every state of a phase
};

/// Arrangement of a progress line, chosen once from the first state of a phase and the width of the
/// screen: the bar keeps its place and its length, every field its column.
class ProgressLayout {
 public:
  /// @param width  columns that the line may take. @param is_ascii  draws the bar without blocks
  ProgressLayout(const Progress& first, size_t width, bool is_ascii);
  /// @param elapsed_s  since the phase began. @param left_s  negative = not known
  std::string line(const Progress& state, double elapsed_s, double left_s) const;

 private:
  std::string bar(double part) const;

  size_t width_;
  bool is_ascii_;
  size_t bar_cells_ = 0;  ///< 0 = no room for a bar
  size_t count_width_ = 0;
  std::vector<std::string> shown_;  ///< names of the fields that fit
};

/// The state as a plain line, with every field that is known.
std::string plain_progress(const Progress& state, double elapsed_s, double left_s);

}  // namespace rematch
