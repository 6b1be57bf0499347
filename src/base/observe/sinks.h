#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace rematch {

using MetricValues = std::vector<std::pair<std::string, double>>;

/// The value of a metric in a list of (name, value) pairs; nullopt when it is absent.
template <typename Values>
std::optional<double> find_value(const Values& values, std::string_view wanted) {
  for (const auto& [name, value] : values) {
    if (static_cast<const std::string&>(name) == wanted) return value;
  }
  return std::nullopt;
}

/// A destination of logged steps.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// @param step  optimizer steps done;
  /// @param values  in the order to be written
  /// @param eval_set  what an evaluation was over (learn/evaluate/eval_set.h), else empty
  /// @throws UserError (environment), e.g. full disk
  virtual void write(int64_t step, const MetricValues& values,
                     const std::string& eval_set = {}) = 0;
  /// Flushes all lines to the device, before a checkpoint relies on them.
  /// @throws UserError (environment)
  virtual void sync() {}
  /// @throws UserError (environment) if its file was removed, moved or replaced
  virtual void require_in_place() const {}
};

/// Opens `logging.jsonl`, to append, and removes a torn last line: one object per line, {"step": n,
/// …}; flushed with every line, so a killed run loses nothing.
std::unique_ptr<MetricSink> make_jsonl_sink(const std::string& path);

/// A picture and its size.
struct PngPicture {
  std::string bytes;  ///< of a PNG file, RGB
  int width_px = 0, height_px = 0;
};

/// TensorBoard's event file: scalars under the metrics' names, pictures and texts.
/// Thread-safe.
class TensorboardSink : public MetricSink {
 public:
  virtual void image(int64_t step, const std::string& tag, const PngPicture& picture) = 0;
  /// @param text  Markdown
  virtual void text(int64_t step, const std::string& tag, const std::string& text) = 0;
};

/// Opens an event file; creates the directory.
/// @param keep_until  step of the checkpoint on resume; TensorBoard then hides later events of
/// earlier files
std::unique_ptr<TensorboardSink> make_tensorboard_sink(
    const std::string& directory, std::optional<int64_t> keep_until = std::nullopt);

/// Removes the lines of a logging.jsonl with a step after `step` (resume).
void truncate_jsonl_after(const std::string& path, int64_t step);

}  // namespace rematch
