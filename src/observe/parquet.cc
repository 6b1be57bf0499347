// Parquet, written by hand: plainly encoded pages of a small table and the description at its end,
// in Thrift's compact protocol. Arrow's C++ library is the usual way and weighs more than all of
// Rematch.
// @source apache/parquet-format: README.md (layout), Encodings.md (PLAIN), parquet.thrift (field
// numbers);
//         apache/thrift: doc/specs/thrift-compact-protocol.md
#include "observe/parquet.h"

#include <cstdint>

#include "base/error.h"
#include "observe/bytes.h"

namespace rematch {
namespace {

// Types of the compact protocol.
constexpr int kI32 = 5, kI64 = 6, kBinary = 8, kList = 9, kStruct = 12;
// Values of parquet.thrift's enumerations.
constexpr int64_t kDouble = 5, kByteArray = 6, kRequired = 0, kUtf8 = 0, kPlain = 0, kRle = 3,
                  kUncompressed = 0, kDataPage = 0;

/// A struct of the compact protocol. Fields are put in ascending order of their ids.
class Fields {
 public:
  Fields& integer(int id, int64_t value, int type = kI32) {
    begin(id, type);
    put_varint(bytes_, (static_cast<uint64_t>(value) << 1) ^ static_cast<uint64_t>(value >> 63));
    return *this;
  }
  Fields& text(int id, const std::string& value) {
    begin(id, kBinary);
    put_text(value);
    return *this;
  }
  Fields& part(int id, const Fields& value) {
    begin(id, kStruct);
    bytes_ += value.ended();
    return *this;
  }
  Fields& integers(int id, const std::vector<int64_t>& values) {
    begin_list(id, kI32, values.size());
    for (const int64_t value : values) put_varint(bytes_, static_cast<uint64_t>(value) << 1);
    return *this;
  }
  Fields& texts(int id, const std::vector<std::string>& values) {
    begin_list(id, kBinary, values.size());
    for (const std::string& value : values) put_text(value);
    return *this;
  }
  Fields& parts(int id, const std::vector<Fields>& values) {
    begin_list(id, kStruct, values.size());
    for (const Fields& value : values) bytes_ += value.ended();
    return *this;
  }
  /// The bytes of the whole struct.
  std::string ended() const { return bytes_ + '\0'; }

 private:
  void begin(int id, int type) {
    REMATCH_CHECK(id > last_id_ && id - last_id_ < 16, "fields in order");
    bytes_ += static_cast<char>((id - last_id_) << 4 | type);
    last_id_ = id;
  }
  void begin_list(int id, int type, size_t size) {
    begin(id, kList);
    bytes_ += static_cast<char>(size < 15 ? size << 4 | static_cast<size_t>(type)
                                          : 0xF0u | static_cast<size_t>(type));
    if (size >= 15) put_varint(bytes_, size);
  }
  void put_text(const std::string& value) {
    put_varint(bytes_, value.size());
    bytes_ += value;
  }

  std::string bytes_;
  int last_id_ = 0;
};

std::string plain(const ParquetColumn& column) {
  std::string bytes;
  if (const auto* texts = std::get_if<std::vector<std::string>>(&column.values)) {
    for (const std::string& text : *texts) {
      put_fixed(bytes, static_cast<uint32_t>(text.size()));
      bytes += text;
    }
  } else {
    for (const double value : std::get<std::vector<double>>(column.values)) put_fixed(bytes, value);
  }
  REMATCH_CHECK(bytes.size() < (size_t{1} << 31), "a page has less than 2 GiB");
  return bytes;
}

size_t length_of(const ParquetColumn& column) {
  return std::visit([](const auto& values) { return values.size(); }, column.values);
}

}  // namespace

std::string parquet_file(const std::vector<ParquetColumn>& columns) {
  REMATCH_CHECK(!columns.empty(), "a table has columns");
  const auto num_rows = static_cast<int64_t>(length_of(columns.front()));
  std::string file = "PAR1";
  std::vector<Fields> schema{
      Fields().text(4, "schema").integer(5, static_cast<int64_t>(columns.size()))};
  std::vector<Fields> chunks;
  int64_t total_bytes = 0;
  for (const ParquetColumn& column : columns) {
    REMATCH_CHECK(static_cast<int64_t>(length_of(column)) == num_rows, column.name);
    const bool is_text = column.values.index() == 0;
    const int64_t type = is_text ? kByteArray : kDouble;
    Fields element = Fields().integer(1, type).integer(3, kRequired).text(4, column.name);
    if (is_text) element.integer(6, kUtf8);
    schema.push_back(element);

    const std::string values = plain(column);
    const auto num_bytes = static_cast<int64_t>(values.size()),
               offset = static_cast<int64_t>(file.size());
    const Fields page =
        Fields().integer(1, num_rows).integer(2, kPlain).integer(3, kRle).integer(4, kRle);
    const std::string header = Fields()
                                   .integer(1, kDataPage)
                                   .integer(2, num_bytes)
                                   .integer(3, num_bytes)
                                   .part(5, page)
                                   .ended();
    file += header + values;
    const auto chunk_bytes = static_cast<int64_t>(header.size() + values.size());
    const Fields about = Fields()
                             .integer(1, type)
                             .integers(2, {kPlain, kRle})
                             .texts(3, {column.name})
                             .integer(4, kUncompressed)
                             .integer(5, num_rows, kI64)
                             .integer(6, chunk_bytes, kI64)
                             .integer(7, chunk_bytes, kI64)
                             .integer(9, offset, kI64);
    chunks.push_back(Fields().integer(2, offset, kI64).part(3, about));
    total_bytes += chunk_bytes;
  }
  const Fields group =
      Fields().parts(1, chunks).integer(2, total_bytes, kI64).integer(3, num_rows, kI64);
  const std::string footer = Fields()
                                 .integer(1, 1)
                                 .parts(2, schema)
                                 .integer(3, num_rows, kI64)
                                 .parts(4, {group})
                                 .text(6, "rematch")
                                 .ended();
  file += footer;
  put_fixed(file, static_cast<uint32_t>(footer.size()));
  return file + "PAR1";
}

}  // namespace rematch
