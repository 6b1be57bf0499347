#include "base/wire.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>

#include "base/flow/segment.h"
#include "base/metrics.h"

namespace {
size_t largest_allocation = 0;
}  // namespace

// Notes what is allocated, for the tests that damaged sizes take no memory.
void* operator new(size_t size) {
  largest_allocation = std::max(largest_allocation, size);
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace rematch {
namespace {

enum class Color { kRed, kGreen };

struct Part {
  std::string text;
  Color color = Color::kRed;
  bool is_last = false;
  std::vector<std::pair<int, double>> values;
  std::map<std::string, std::array<int64_t, 2>> by_name;
  std::optional<std::string> note;

  bool operator==(const Part&) const = default;
  template <typename Wire>
  friend void fields(Wire& wire, Part& part) {
    wire(part.text, part.color, part.is_last, part.values, part.by_name, part.note);
  }
};

Part some_part() {
  return {std::string("a\0b", 3), Color::kGreen, true, {{1, 0.1}, {2, -0.0}}, {{"x", {3, 4}}}, "n"};
}

/// A window with everything that a checkpoint may store.
OpenWindow some_window() {
  auto segment = std::make_shared<Segment>();
  segment->token_ids = {3, 4, 5, 6};
  segment->labels = {kIgnoreLabel, 4, 5, 6};
  segment->add_slot(kCoordSlots, {.position = 3, .target = 500});
  segment->images = {{.path = "a.jpg", .grid_thw = {1, 2, 4}}};
  segment->where = "train.jsonl:1";
  return {.window = {.window_idx = 3, .rows = {{{segment, segment}}, {{segment}}}}, .step0 = 9};
}

/// Reads bytes that may be damaged.
/// @return true if they were read
bool can_read(std::string_view bytes) {
  largest_allocation = 0;
  const bool is_read = try_from_wire<OpenWindow>(bytes).has_value();
  // A row of 8 bytes takes 24 in memory, and vectors double.
  EXPECT_LE(largest_allocation, 8 * bytes.size() + 1024);
  return is_read;
}

}  // namespace

TEST(Wire, ValuesRoundTrip) {
  EXPECT_EQ(from_wire<Part>(to_wire(some_part())), some_part());
  EXPECT_EQ(from_wire<Part>(to_wire(Part{})), Part{});
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(from_wire<double>(to_wire(nan))));
  MetricsBag bag;
  bag.add("loss", 0.1);
  bag.add("loss", std::numeric_limits<double>::infinity());
  EXPECT_EQ(from_wire<MetricsBag>(to_wire(bag)).all(), bag.all());
}

TEST(Wire, SharedValuesComeBackEqual) {
  const std::string bytes = to_wire(some_window());
  const OpenWindow again = from_wire<OpenWindow>(bytes);
  EXPECT_EQ(to_wire(again), bytes);
  ASSERT_EQ(again.window.rows.size(), 2u);
  EXPECT_EQ(again.window.rows[0].segments[1]->images,
            some_window().window.rows[1].segments[0]->images);
  EXPECT_EQ(again.step0, 9);
}

TEST(Wire, ATruncatedMessageIsABug) {
  const std::string bytes = to_wire(std::string("text"));
  EXPECT_THROW(from_wire<std::string>(bytes.substr(0, bytes.size() - 1)), InternalError);
  EXPECT_THROW(from_wire<std::string>(bytes + "x"), InternalError);
}

TEST(Wire, EveryTruncationIsRefused) {
  const std::string bytes = to_wire(some_window());
  ASSERT_TRUE(can_read(bytes));
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_FALSE(can_read(std::string_view(bytes).substr(0, size))) << size;
  EXPECT_FALSE(can_read(bytes + '\0'));
}

TEST(Wire, ABoolIsZeroOrOne) {
  EXPECT_EQ(try_from_wire<bool>("\1"), true);
  EXPECT_FALSE(try_from_wire<bool>("\2").has_value());
}

TEST(Wire, SizesBeyondTheBytesLeftTakeNoMemory) {
  const std::string bytes = to_wire(some_window());
  for (const uint64_t size :
       {uint64_t{bytes.size()} + 1, uint64_t{1} << 20, uint64_t{1} << 33, ~uint64_t{0}}) {
    for (size_t at = 0; at + sizeof size <= bytes.size(); ++at) {
      std::string damaged = bytes;
      damaged.replace(at, sizeof size, reinterpret_cast<const char*>(&size), sizeof size);
      can_read(damaged);
    }
    EXPECT_FALSE(try_from_wire<std::string>(to_wire(size) + bytes).has_value()) << size;
    EXPECT_FALSE(try_from_wire<std::vector<int>>(to_wire(size) + bytes).has_value()) << size;
    const auto map = try_from_wire<std::map<int, int>>(to_wire(size) + bytes);
    EXPECT_FALSE(map.has_value()) << size;
  }
}

RC_GTEST_PROP(Wire, AnyChangedBytesAreReadOrRefused,
              (const std::vector<std::pair<uint32_t, uint8_t>>& changes, uint32_t cut)) {
  std::string bytes = to_wire(some_window());
  for (const auto& [at, byte] : changes) bytes[at % bytes.size()] = static_cast<char>(byte);
  if (cut % 4 == 0) bytes.resize(cut / 4 % bytes.size());
  if (can_read(bytes))
    RC_ASSERT(try_from_wire<OpenWindow>(to_wire(from_wire<OpenWindow>(bytes))).has_value());
}

RC_GTEST_PROP(Wire, AnyBytesAtAllAreReadOrRefused, (const std::string& bytes)) { can_read(bytes); }

}  // namespace rematch
