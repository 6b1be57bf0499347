#include "base/content_key.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/host_memory.h"

namespace rematch {
namespace {

ContentKey key_of(const std::vector<std::string>& pieces) {
  ContentHasher hasher;
  for (const std::string& piece : pieces) hasher.feed(piece.data(), piece.size());
  return hasher.key();
}

TEST(ContentKey, StandsForTheBytesAndNotForTheirPieces) {
  EXPECT_EQ(key_of({"rematch"}), key_of({"re", "", "match"}));
  EXPECT_NE(key_of({"rematch"}), key_of({"rematcH"}));
  EXPECT_NE(key_of({}), key_of({std::string(1, '\0')}));
}

TEST(ContentKey, MayBeAskedBetweenPieces) {
  ContentHasher hasher;
  hasher.feed_value(int64_t{7});
  const ContentKey first = hasher.key();
  EXPECT_EQ(hasher.key(), first);
  hasher.feed_value(int64_t{8});
  EXPECT_NE(hasher.key(), first);
}

TEST(HostMemory, IsKnownAndPlausible) {
  const MemoryBytes memory = host_memory();
  EXPECT_GT(memory.available, int64_t{1} << 20);
  EXPECT_GE(memory.total, memory.available);
}

}  // namespace
}  // namespace rematch
