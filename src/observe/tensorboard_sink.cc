// TensorBoard's event files, written by hand: a record is framed as TFRecord (length, masked CRC-32C of the length, bytes, masked CRC-32C
// of the bytes) and holds a protobuf `Event`. We need seven of its fields, so a protobuf library would be a large dependency for thirty
// lines.
// @source tensorboard/compat/proto/event.proto and summary.proto (field numbers), tensorflow/core/lib/hash/crc32c.h (the mask)
#include <fmt/core.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <ctime>

#include "base/file.h"
#include "observe/append_file.h"
#include "observe/sinks.h"

namespace rematch {
namespace {

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
  for (const char byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<unsigned char>(byte)) & 0xFFu];
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

/// Appends a number's bytes, lowest first.
template <typename Number>
void put_fixed(std::string& out, Number value) {
  std::array<char, sizeof(Number)> bytes{};
  std::memcpy(bytes.data(), &value, sizeof value);  // every supported machine is little-endian
  out.append(bytes.data(), bytes.size());
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

// Wire types of protobuf.
constexpr int kVarint = 0;
constexpr int kFixed64 = 1;
constexpr int kBytes = 2;
constexpr int kFixed32 = 5;

void put_tag(std::string& out, int field, int wire_type) { put_varint(out, static_cast<uint64_t>(field << 3 | wire_type)); }

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_tag(out, field, kBytes);
  put_varint(out, bytes.size());
  out += bytes;
}

/// Event{wall_time = 1}, to which one of the payloads below is appended.
std::string begin_event() {
  std::string event;
  put_tag(event, 1, kFixed64);
  put_fixed(event, std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count());
  return event;
}

std::string framed(const std::string& event) {
  std::string length;
  put_fixed(length, static_cast<uint64_t>(event.size()));
  std::string record = length;
  put_fixed(record, masked_crc32c(length));
  record += event;
  put_fixed(record, masked_crc32c(event));
  return record;
}

std::string file_name() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) std::strcpy(host.data(), "localhost");
  return fmt::format("events.out.tfevents.{}.{}.{}.0", std::time(nullptr), host.data(), ::getpid());
}

/// Marks the start of a session at a step: readers drop earlier events from this step on.
std::string start_event(int64_t step) {
  constexpr uint64_t kStart = 1;  // SessionLog.SessionStatus.START
  std::string session_log;
  put_tag(session_log, 1, kVarint);  // SessionLog.status
  put_varint(session_log, kStart);
  std::string event = begin_event();
  put_tag(event, 2, kVarint);  // Event.step
  put_varint(event, static_cast<uint64_t>(step));
  put_bytes(event, 7, session_log);  // Event.session_log
  return event;
}

class TensorboardSink : public MetricSink {
 public:
  TensorboardSink(const std::string& directory, std::optional<int64_t> keep_until) : file_(join_path(directory, file_name())) {
    std::string event = begin_event();
    put_bytes(event, 3, "brain.Event:2");  // Event.file_version
    file_.append(framed(event));
    if (keep_until) file_.append(framed(start_event(*keep_until + 1)));
  }

  void write(int64_t step, const MetricValues& values) override {
    std::string summary;
    for (const auto& [name, value] : values) {
      std::string scalar;
      put_bytes(scalar, 1, name);    // Summary.Value.tag
      put_tag(scalar, 2, kFixed32);  // Summary.Value.simple_value
      put_fixed(scalar, static_cast<float>(value));
      put_bytes(summary, 1, scalar);  // Summary.value
    }
    std::string event = begin_event();
    put_tag(event, 2, kVarint);  // Event.step
    put_varint(event, static_cast<uint64_t>(step));
    put_bytes(event, 5, summary);  // Event.summary
    file_.append(framed(event));
  }

 private:
  AppendFile file_;
};

}  // namespace

std::unique_ptr<MetricSink> make_tensorboard_sink(const std::string& directory, std::optional<int64_t> keep_until) {
  return std::make_unique<TensorboardSink>(directory, keep_until);
}

}  // namespace rematch
