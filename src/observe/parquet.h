#pragma once
#include <string>
#include <variant>
#include <vector>

namespace rematch {

/// A column of a table: texts (UTF-8) or numbers, no missing values.
struct ParquetColumn {
  std::string name;
  std::variant<std::vector<std::string>, std::vector<double>> values;
};

/// The bytes of a Parquet file that holds these columns as one row group, uncompressed.
/// @param columns  at least one, all of the same length, each below 2 GiB
std::string parquet_file(const std::vector<ParquetColumn>& columns);

}  // namespace rematch
