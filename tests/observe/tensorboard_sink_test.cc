#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/error.h"
#include "base/file.h"
#include "base/observe/sinks.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

/// CRC-32C bit by bit, unlike the table of the code under test.
uint32_t crc32c(std::string_view bytes) {
  uint32_t crc = ~0u;
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0x82F63B78u & (0u - (crc & 1u)));
  }
  return ~crc;
}

uint32_t masked(std::string_view bytes) {
  const uint32_t crc = crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xA282EAD8u;
}

template <typename Number>
Number take(std::string_view& bytes) {
  Number value{};
  std::memcpy(&value, bytes.data(), sizeof value);
  bytes.remove_prefix(sizeof value);
  return value;
}

uint64_t take_varint(std::string_view& bytes) {
  uint64_t value = 0;
  for (int shift = 0;; shift += 7) {
    const auto byte = take<uint8_t>(bytes);
    value |= static_cast<uint64_t>(byte & 0x7F) << shift;
    if (byte < 0x80) return value;
  }
}

/// Fields of a protobuf message: number → raw bytes of each occurrence (varints as 8 bytes).
std::multimap<uint64_t, std::string> fields_of(std::string_view message) {
  std::multimap<uint64_t, std::string> fields;
  while (!message.empty()) {
    const uint64_t tag = take_varint(message);
    size_t size = 0;
    switch (tag & 7) {
      case 0: {
        const uint64_t value = take_varint(message);
        fields.emplace(tag >> 3, std::string(reinterpret_cast<const char*>(&value), 8));
        continue;
      }
      case 1: size = 8; break;
      case 2: size = take_varint(message); break;
      case 5: size = 4; break;
      default: ADD_FAILURE() << "wire type " << (tag & 7); return fields;
    }
    fields.emplace(tag >> 3, std::string(message.substr(0, size)));
    message.remove_prefix(size);
  }
  return fields;
}

template <typename Number>
Number as(const std::string& bytes) {
  Number value{};
  EXPECT_EQ(bytes.size(), sizeof value);
  std::memcpy(&value, bytes.data(), std::min(bytes.size(), sizeof value));
  return value;
}

struct Event {
  double wall_time = 0;
  uint64_t step = 0;
  std::string file_version;
  std::string session_log;
  std::vector<std::pair<std::string, float>> scalars;
};

std::vector<Event> read_events(const std::string& path) {
  const std::string content = read_file(path);
  std::string_view rest = content;
  std::vector<Event> events;
  while (!rest.empty()) {
    const std::string length_bytes(rest.substr(0, 8));
    const auto length = take<uint64_t>(rest);
    EXPECT_EQ(take<uint32_t>(rest), masked(length_bytes));
    const std::string data(rest.substr(0, length));
    rest.remove_prefix(length);
    EXPECT_EQ(take<uint32_t>(rest), masked(data));
    Event event;
    for (const auto& [number, bytes] : fields_of(data)) {
      if (number == 1) event.wall_time = as<double>(bytes);
      if (number == 2) event.step = as<uint64_t>(bytes);
      if (number == 3) event.file_version = bytes;
      if (number == 7) event.session_log = bytes;
      if (number != 5) continue;
      for (const auto& [value_number, value_bytes] : fields_of(bytes)) {
        EXPECT_EQ(value_number, 1u);
        const auto value = fields_of(value_bytes);
        event.scalars.emplace_back(value.find(1)->second, as<float>(value.find(2)->second));
      }
    }
    events.push_back(event);
  }
  return events;
}

std::string only_file(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    files.push_back(entry.path().string());
  EXPECT_EQ(files.size(), 1u);
  return files.at(0);
}

}  // namespace

TEST(TensorboardSink, WritesEventsThatAReaderUnderstands) {
  ASSERT_EQ(crc32c("123456789"), 0xE3069283u);  // the check value of CRC-32C
  const test::TempDir dir;
  const auto sink = make_tensorboard_sink(dir.file("tb"));
  sink->write(10, {{"loss", 1.5}, {"rollout/f1", 0.25}});
  sink->write(300, {{"loss", -2}});
  const std::string path = only_file(dir.file("tb"));
  EXPECT_NE(path.find("events.out.tfevents."), std::string::npos);
  const std::vector<Event> events = read_events(path);
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_GT(events[0].wall_time, 1.5e9);
  EXPECT_EQ(events[1].step, 10u);
  EXPECT_EQ(events[1].scalars,
            (std::vector<std::pair<std::string, float>>{{"loss", 1.5f}, {"rollout/f1", 0.25f}}));
  EXPECT_EQ(events[2].step, 300u);
  EXPECT_EQ(events[2].scalars, (std::vector<std::pair<std::string, float>>{{"loss", -2.0f}}));
  EXPECT_GE(events[2].wall_time, events[0].wall_time);
}

TEST(TensorboardSink, FramesLongSummaries) {
  const test::TempDir dir;
  const auto sink = make_tensorboard_sink(dir.path());
  MetricValues values;
  for (int i = 0; i < 100; ++i)
    values.emplace_back("rollout/some_long_metric_name_" + std::to_string(i), i);
  sink->write(1, values);
  const std::vector<Event> events = read_events(only_file(dir.path()));
  ASSERT_EQ(events.size(), 2u);
  ASSERT_EQ(events[1].scalars.size(), 100u);
  EXPECT_EQ(events[1].scalars[99].second, 99.0f);
}

TEST(TensorboardSink, AResumedRunAnnouncesWhereItStarts) {
  const test::TempDir dir;
  const auto sink = make_tensorboard_sink(dir.path(), 300);
  sink->write(301, {{"loss", 1}});
  const std::vector<Event> events = read_events(only_file(dir.path()));
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[1].step, 301u);
  // SessionLog{status = START}, as protobuf writes it
  EXPECT_EQ(events[1].session_log, std::string("\x08\x01"));
  EXPECT_EQ(events[2].step, 301u);
  EXPECT_EQ(events[2].scalars.size(), 1u);
}

TEST(TensorboardSink, AFreshRunHidesNothing) {
  const test::TempDir dir;
  make_tensorboard_sink(dir.path());
  const std::vector<Event> events = read_events(only_file(dir.path()));
  ASSERT_EQ(events.size(), 1u);
  EXPECT_TRUE(events[0].session_log.empty());
}

TEST(TensorboardSink, NamesADirectoryItCannotCreate) {
  const test::TempDir dir;
  dir.write("file", "");
  const UserError error =
      test::catch_user_error([&] { make_tensorboard_sink(dir.file("file/tb")); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
}

}  // namespace rematch
