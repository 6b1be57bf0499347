// The rule `binpacking` against the Python package on 20 000 random buffers
// (dev/goldens/pack_binpacking.py draws the same ones).
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>

#include "base/file.h"
#include "base/json.h"
#include "learn/pack/select.h"
#include "support/paths.h"

namespace rematch {
namespace {

// splitmix64, as in the script.
class Draw {
 public:
  explicit Draw(uint64_t seed) : state_(seed) {}
  int below(int limit) {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
    return static_cast<int>((z ^ (z >> 31)) % static_cast<uint64_t>(limit));
  }

 private:
  uint64_t state_;
};

int draw_len(Draw& draw, int shape, int cap) {
  switch (shape) {
    case 0: return 1 + draw.below(cap);
    case 1: return 1 + draw.below(std::max(1, cap / 4));
    case 2: return std::max(1, cap / 16) * (1 + draw.below(6));
    case 3: return cap / 3 + draw.below(cap / 3);
    case 4: return 1 + draw.below(std::min(cap, 8));
    default: return draw.below(3) != 0 ? cap / 4 - draw.below(2) : 1 + draw.below(cap);
  }
}

struct GoldenBuffer {
  int packing_length = 0;
  std::vector<int> encoded_lens;
};

GoldenBuffer draw_buffer(int number) {
  constexpr int kCaps[] = {10, 24, 100, 1000, 16000, 32000};
  Draw draw(static_cast<uint64_t>(number));
  GoldenBuffer buffer{.packing_length = kCaps[draw.below(6)]};
  const int count = number % 100 == 99 ? 512 : 1 + draw.below(64);
  const int shape = draw.below(6);
  for (int i = 0; i < count; ++i) {
    buffer.encoded_lens.push_back(
        std::clamp(draw_len(draw, shape, buffer.packing_length), 1, buffer.packing_length));
  }
  return buffer;
}

Selection binpacking_of(const GoldenBuffer& buffer) {
  return select_segments(PackingSelector::kBinpacking, buffer.encoded_lens, buffer.packing_length);
}

class Fnv1a64 {
 public:
  void add(uint32_t value) {
    for (int shift = 0; shift < 32; shift += 8)
      state_ = (state_ ^ (value >> shift & 255)) * 0x100000001B3ULL;
  }
  std::string hex() const {
    std::ostringstream text;
    text << std::hex;
    text.width(16);
    text.fill('0');
    text << state_;
    return text.str();
  }

 private:
  uint64_t state_ = 0xCBF29CE484222325ULL;
};

std::vector<Json> golden_rows() {
  std::istringstream lines(read_file(test::source_path("tests/golden/pack_binpacking.jsonl")));
  std::vector<Json> rows;
  for (std::string line; std::getline(lines, line);)
    rows.push_back(parse_json(line, "pack_binpacking.jsonl"));
  return rows;
}

}  // namespace

// spec: select-01 select-10
TEST(BinpackingGolden, FourHundredBuffersAgreeInFull) {
  int count = 0;
  for (const Json& row : golden_rows()) {
    if (!row.contains("buffer")) continue;
    const GoldenBuffer buffer = draw_buffer(row["buffer"].get<int>());
    ASSERT_EQ(buffer.packing_length, row["packing_length"].get<int>()) << row;
    ASSERT_EQ(buffer.encoded_lens, row["encoded_lens"].get<std::vector<int>>()) << row;
    EXPECT_EQ(binpacking_of(buffer).indices, row["selected"].get<std::vector<int>>()) << row;
    ++count;
  }
  EXPECT_EQ(count, 400);
}

TEST(BinpackingGolden, TwentyThousandBuffersAgreeByTheirHashes) {
  int count = 0;
  for (const Json& row : golden_rows()) {
    if (!row.contains("from")) continue;
    const int from = row["from"].get<int>();
    EXPECT_EQ(from, count);
    Fnv1a64 hash;
    for (int number = from; number < from + 100; ++number, ++count) {
      const Selection selection = binpacking_of(draw_buffer(number));
      hash.add(static_cast<uint32_t>(selection.indices.size()));
      for (const int i : selection.indices) hash.add(static_cast<uint32_t>(i));
    }
    EXPECT_EQ(hash.hex(), row["fnv1a64"].get<std::string>())
        << "buffers " << from << " to " << from + 99;
  }
  EXPECT_EQ(count, 20000);
}

}  // namespace rematch
