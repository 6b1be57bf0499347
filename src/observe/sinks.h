#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rematch {

using MetricValues = std::vector<std::pair<std::string, double>>;

/// A destination of logged steps.
class MetricSink {
 public:
  virtual ~MetricSink() = default;
  /// @param step  optimizer steps done; @param values  in the order to be written
  /// @param eval_set  what an evaluation was over (evaluate/eval_set.h), else empty
  /// @throws UserError (environment), e.g. full disk
  virtual void write(int64_t step, const MetricValues& values,
                     const std::string& eval_set = {}) = 0;
  /// Brings what was written to the device, before a checkpoint counts on it. @throws UserError
  /// (environment)
  virtual void sync() {}
};

/// `logging.jsonl`: one object per line, {"step": n, …}; flushed with every line, so a killed run
/// loses nothing. Appends.
class JsonlSink : public MetricSink {
 public:
  /// Bytes that the file held when it was opened.
  virtual int64_t earlier_bytes() const = 0;
  /// Drops them: the log then begins with what this sink wrote.
  virtual void drop_earlier() = 0;
};

/// Drops a torn end first.
std::unique_ptr<JsonlSink> make_jsonl_sink(const std::string& path);

/// A picture and its size.
struct PngPicture {
  std::string bytes;  ///< of a PNG file, RGB
  int width_px = 0, height_px = 0;
};

/// TensorBoard's event file: scalars under the metrics' names, and what has no place in a log line.
/// Thread-safe.
class TensorboardSink : public MetricSink {
 public:
  virtual void image(int64_t step, const std::string& tag, const PngPicture& picture) = 0;
  /// @param text  Markdown
  virtual void text(int64_t step, const std::string& tag, const std::string& text) = 0;
  /// The configuration of the run, for the tab HPARAMS.
  virtual void settings(const std::vector<std::pair<std::string, std::string>>& settings) = 0;
};

/// An event file in a directory (created).
/// @param keep_until  given on resume, the checkpoint's step: TensorBoard then hides what earlier
/// files hold after it
std::unique_ptr<TensorboardSink> make_tensorboard_sink(
    const std::string& directory, std::optional<int64_t> keep_until = std::nullopt);

/// Drops the lines of a logging.jsonl whose step is after `step` (resume).
void truncate_jsonl_after(const std::string& path, int64_t step);

}  // namespace rematch
