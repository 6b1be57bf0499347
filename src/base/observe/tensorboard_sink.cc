// TensorBoard's event files, written by hand: a record is framed as TFRecord (length, masked
// CRC-32C of the length, bytes, masked CRC-32C of the bytes) and holds a protobuf `Event`.
// @source tensorboard/compat/proto/event.proto and summary.proto (field numbers),
// tensorflow/core/lib/hash/crc32c.h (the mask)
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <ctime>
#include <mutex>

#include "base/file.h"
#include "base/host_memory.h"
#include "base/observe/append_file.h"
#include "base/observe/protobuf.h"
#include "base/observe/sinks.h"
#include "base/observe/tensorboard_values.h"

namespace rematch {
namespace {

using namespace protobuf;  // NOLINT(google-build-using-namespace): this file is about nothing else

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? 0x82F63B78u : 0u);
    table[byte] = crc;
  }
  return table;
}

uint32_t masked_crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_crc_table();
  uint32_t crc = 0xFFFFFFFFu;
  for (const char byte : bytes)
    crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFu];
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

/// Event{wall_time = 1}, without payload.
std::string begin_event() {
  std::string event;
  put_tag(event, 1, kFixed64);
  put_fixed(
      event,
      std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

std::string frame(const std::string& event) {
  std::string length;
  put_fixed(length, static_cast<uint64_t>(event.size()));
  std::string record = length;
  put_fixed(record, masked_crc32c(length));
  record += event;
  put_fixed(record, masked_crc32c(event));
  return record;
}

std::string file_name() {
  return fmt::format("events.out.tfevents.{}.{}.{}.0", std::time(nullptr), host_name(), ::getpid());
}

/// Marks the start of a session at a step: readers drop earlier events from this step on.
std::string start_event(int64_t step) {
  constexpr uint64_t kStart = 1;  // SessionLog.SessionStatus.START
  std::string session_log, event = begin_event();
  put_number(session_log, 1, kStart);                 // SessionLog.status
  put_number(event, 2, static_cast<uint64_t>(step));  // Event.step
  put_bytes(event, 7, session_log);                   // Event.session_log
  return event;
}

class EventFile : public TensorboardSink {
 public:
  EventFile(const std::string& directory, std::optional<int64_t> keep_until)
      : file_(join_path(directory, file_name())) {
    std::string event = begin_event();
    put_bytes(event, 3, "brain.Event:2");  // Event.file_version
    file_.append(frame(event));
    if (keep_until) file_.append(frame(start_event(*keep_until + 1)));
  }

  void write(int64_t step, const MetricValues& values, const std::string&) override {
    Strings scalars;
    for (const auto& [name, value] : values)
      scalars.push_back(scalar_value(name, static_cast<float>(value)));
    append(step, scalars);
  }
  void image(int64_t step, const std::string& tag, const PngPicture& picture) override {
    append(step, {image_value(tag, picture)});
  }
  void text(int64_t step, const std::string& tag, const std::string& text) override {
    append(step, {text_value(tag, text)});
  }

 private:
  void append(int64_t step, const Strings& values) {
    std::string summary, event = begin_event();
    for (const std::string& value : values) put_bytes(summary, 1, value);  // Summary.value
    put_number(event, 2, static_cast<uint64_t>(step));                     // Event.step
    put_bytes(event, 5, summary);                                          // Event.summary
    const std::lock_guard lock(mutex_);
    file_.append(frame(event));
  }

  std::mutex mutex_;
  AppendFile file_;
};

}  // namespace

std::unique_ptr<TensorboardSink> make_tensorboard_sink(const std::string& directory,
                                                       std::optional<int64_t> keep_until) {
  return std::make_unique<EventFile>(directory, keep_until);
}

}  // namespace rematch
