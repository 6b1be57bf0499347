#include "observe/parquet.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/error.h"

namespace rematch {

TEST(Parquet, StoresPlainValuesBetweenItsMagicBytes) {
  const std::string file = parquet_file(
      {{"name", std::vector<std::string>{"a", "größe"}}, {"score", std::vector<double>{0.5, -1}}});
  EXPECT_EQ(file.substr(0, 4), "PAR1");
  EXPECT_EQ(file.substr(file.size() - 4), "PAR1");
  EXPECT_NE(file.find(std::string("\1\0\0\0a\7\0\0\0größe", 16)), std::string::npos);
  uint32_t footer = 0;
  std::memcpy(&footer, file.data() + file.size() - 8, 4);
  EXPECT_LT(footer, file.size());
  EXPECT_EQ(file[file.size() - 8 - footer], 0x15) << "the description begins with its version";
}

TEST(Parquet, ColumnsOfDifferentLengthsAreABug) {
  EXPECT_THROW(parquet_file({{"a", std::vector<double>{1}}, {"b", std::vector<double>{}}}),
               InternalError);
  EXPECT_THROW(parquet_file({}), InternalError);
}

}  // namespace rematch
