#pragma once
#include <c10/core/Event.h>

#include <deque>
#include <functional>
#include <utility>

namespace rematch {

/// Waits for messages between devices: the device's stream waits, not the host, and events on the
/// stream measure how long. A host that waited for each message would lose its lead over the device
/// hundreds of times a step.
class StreamWaits {
 public:
  explicit StreamWaits(c10::Device device) : device_(device) {}

  /// @param wait_on_stream  makes the current stream of the device wait, and returns at once
  void add(const std::function<void()>& wait_on_stream);
  /// Seconds of the waits that have ended since the last call; neither waits nor throws.
  double take_s();
  /// Returns when the stream has done all its work.
  void drain() const { stream().synchronize(); }

 private:
  c10::Stream stream() const;

  c10::Device device_;
  std::deque<std::pair<c10::Event, c10::Event>> waits_;  // begin and end, oldest first
};

}  // namespace rematch
