#include "model/checkpoint/safetensors_header.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"

namespace rematch {
namespace {

constexpr uint64_t kMaxHeaderBytes = 100'000'000;
constexpr size_t kLengthBytes = 8;
constexpr const char* kCopyAgain = "the file is damaged or truncated; copy or download it again";

// Ranks are the order in which safetensors 0.8 writes files with one tensor of each kind.
constexpr std::array kDtypes = {
    SafetensorsDtype{"BOOL", 1, 0},    SafetensorsDtype{"U8", 1, 1},
    SafetensorsDtype{"I8", 1, 2},      SafetensorsDtype{"F8_E5M2", 1, 3},
    SafetensorsDtype{"F8_E4M3", 1, 4}, SafetensorsDtype{"F8_E8M0", 1, 5},
    SafetensorsDtype{"I16", 2, 6},     SafetensorsDtype{"U16", 2, 7},
    SafetensorsDtype{"F16", 2, 8},     SafetensorsDtype{"BF16", 2, 9},
    SafetensorsDtype{"I32", 4, 10},    SafetensorsDtype{"U32", 4, 11},
    SafetensorsDtype{"F32", 4, 12},    SafetensorsDtype{"C64", 8, 13},
    SafetensorsDtype{"F64", 8, 14},    SafetensorsDtype{"I64", 8, 15},
    SafetensorsDtype{"U64", 8, 16},
};

[[noreturn]] void refuse(const std::string& where, std::string error, std::string what,
                         std::string fix = kCopyAgain) {
  throw data_error(
      {.error = std::move(error), .where = where, .what = std::move(what), .fix = std::move(fix)});
}

// Messages contain untrusted bytes: keeps them short and printable.
std::string display_text(const Json& value) {
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 120) text = text.substr(0, 117) + "...";
  return text;
}

uint64_t little_endian_64(std::string_view bytes) {
  uint64_t value = 0;
  for (size_t i = kLengthBytes; i-- > 0;) value = value << 8 | static_cast<unsigned char>(bytes[i]);
  return value;
}

std::string_view header_text(std::string_view file, const std::string& where) {
  if (file.size() < kLengthBytes) {
    refuse(where, "a safetensors file is too short",
           fmt::format("{} bytes; the header's length field alone takes {}", file.size(),
                       kLengthBytes));
  }
  const uint64_t length = little_endian_64(file);
  if (length > kMaxHeaderBytes) {
    refuse(where, "a safetensors header is too large",
           fmt::format("{} bytes; the limit is {}", length, kMaxHeaderBytes),
           "check that this is a safetensors file (not an archive or a Git LFS pointer), else "
           "copy it again");
  }
  if (length > file.size() - kLengthBytes) {
    refuse(where, "a safetensors file is truncated inside its header",
           fmt::format("the header takes {} bytes; the file has {} after the length field", length,
                       file.size() - kLengthBytes));
  }
  const std::string_view text = file.substr(kLengthBytes, length);
  if (text.empty() || text.front() != '{') {
    refuse(where, "a safetensors header does not start with {",
           fmt::format("header of {} bytes", text.size()),
           "check that this is a safetensors file, else copy it again");
  }
  return text;
}

// Reads and checks the description of a tensor: exactly dtype, shape and data_offsets.
class EntryReader {
 public:
  EntryReader(const std::string& name, const Json& value, const std::string& file)
      : value_(value), where_(fmt::format("{}: tensor {}", file, display_text(Json(name)))) {
    entry_.name = name;
  }

  SafetensorsEntry read() {
    if (!value_.is_object())
      refuse(where_, "a tensor's description is not an object", display_text(value_));
    for (const auto& member : value_.items()) {
      if (member.key() != "dtype" && member.key() != "shape" && member.key() != "data_offsets") {
        refuse(where_, "a tensor's description has an unknown key",
               display_text(Json(member.key())), "use only dtype, shape and data_offsets");
      }
    }
    read_dtype();
    read_shape();
    read_offsets();
    return std::move(entry_);
  }

 private:
  const Json& member(const char* key) {
    const auto found = value_.find(key);
    if (found == value_.end())
      refuse(where_, fmt::format("a tensor's description has no {}", key), display_text(value_));
    return *found;
  }

  void read_dtype() {
    const Json& value = member("dtype");
    entry_.dtype =
        value.is_string() ? find_safetensors_dtype(value.get_ref<const std::string&>()) : nullptr;
    if (entry_.dtype == nullptr)
      refuse(where_, "a tensor has an unknown dtype", display_text(value),
             "save the checkpoint in F32, BF16 or F16");
  }

  void read_shape() {
    const Json& value = member("shape");
    if (!value.is_array()) refuse(where_, "a tensor's shape is not a list", display_text(value));
    uint64_t size = static_cast<uint64_t>(entry_.dtype->size_bytes);
    bool has_zero = false;
    for (const Json& item : value) {
      if (!item.is_number_unsigned() || item.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX)) {
        refuse(where_, "a tensor's shape has an invalid value", display_text(value));
      }
      const uint64_t extent = item.get<uint64_t>();
      entry_.shape.push_back(static_cast<int64_t>(extent));
      has_zero = has_zero || extent == 0;
      // Sizes before a zero count too, because torch also multiplies them.
      if (extent != 0 && size > static_cast<uint64_t>(INT64_MAX) / extent) {
        refuse(where_, "a tensor's shape is too large for any memory", display_text(value));
      }
      if (extent != 0) size *= extent;
    }
    size_bytes_ = has_zero ? 0 : size;
  }

  void read_offsets() {
    const Json& value = member("data_offsets");
    if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() ||
        !value[1].is_number_unsigned()) {
      refuse(where_, "a tensor's data_offsets are not two positions", display_text(value));
    }
    entry_.begin_bytes = value[0].get<uint64_t>();
    entry_.end_bytes = value[1].get<uint64_t>();
    if (entry_.begin_bytes > entry_.end_bytes ||
        entry_.end_bytes - entry_.begin_bytes != size_bytes_) {
      refuse(where_, "a tensor's bytes do not match its shape",
             fmt::format("data_offsets {}, but dtype {} and shape {} take {} bytes",
                         display_text(value), entry_.dtype->name, display_text(member("shape")),
                         size_bytes_));
    }
  }

  const Json& value_;
  std::string where_;
  SafetensorsEntry entry_;
  uint64_t size_bytes_ = 0;
};

std::map<std::string, std::string> read_metadata(const Json& value, const std::string& where) {
  std::map<std::string, std::string> metadata;
  if (!value.is_object()) refuse(where, "__metadata__ is not an object", display_text(value));
  for (const auto& member : value.items()) {
    if (!member.value().is_string()) {
      refuse(where, "__metadata__ has a value that is not a string", display_text(member.value()),
             "store strings only");
    }
    metadata[member.key()] = member.value().get<std::string>();
  }
  return metadata;
}

// Sorted by offset, entries must be adjacent and fill the data area.
void check_coverage(const std::vector<SafetensorsEntry>& entries, uint64_t data_bytes,
                    const std::string& where) {
  std::vector<const SafetensorsEntry*> by_offset;
  for (const SafetensorsEntry& entry : entries) by_offset.push_back(&entry);
  std::ranges::sort(by_offset, [](const SafetensorsEntry* a, const SafetensorsEntry* b) {
    return std::pair(a->begin_bytes, a->end_bytes) < std::pair(b->begin_bytes, b->end_bytes);
  });
  uint64_t expected = 0;
  for (const SafetensorsEntry* entry : by_offset) {
    if (entry->begin_bytes != expected) {
      refuse(fmt::format("{}: tensor {}", where, display_text(Json(entry->name))),
             entry->begin_bytes < expected ? "two tensors overlap in a safetensors file"
                                           : "a safetensors file has a hole between tensors",
             fmt::format("starts at byte {}, the tensor before it ends at {}", entry->begin_bytes,
                         expected));
    }
    expected = entry->end_bytes;
  }
  if (expected != data_bytes) {
    refuse(where,
           expected > data_bytes ? "a safetensors file is truncated"
                                 : "a safetensors file has bytes that belong to no tensor",
           fmt::format("tensors take {} bytes; the file has {} after the header", expected,
                       data_bytes));
  }
}

}  // namespace

const SafetensorsDtype* find_safetensors_dtype(std::string_view name) {
  const auto found =
      std::ranges::find_if(kDtypes, [&](const SafetensorsDtype& row) { return name == row.name; });
  return found == kDtypes.end() ? nullptr : &*found;
}

SafetensorsHeader parse_safetensors_header(std::string_view file, const std::string& where) {
  const std::string_view text = header_text(file, where);
  const Json root = parse_json(text, where);
  SafetensorsHeader header;
  header.data_begin_bytes = kLengthBytes + text.size();
  for (const auto& member : root.items()) {
    if (member.key() == "__metadata__") {
      header.metadata = read_metadata(member.value(), where);
    } else {
      header.entries.push_back(EntryReader(member.key(), member.value(), where).read());
    }
  }
  check_coverage(header.entries, file.size() - header.data_begin_bytes, where);
  return header;
}

void sort_like_reference(std::vector<SafetensorsEntry>& entries) {
  std::ranges::sort(entries, [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return a.dtype->rank != b.dtype->rank ? a.dtype->rank > b.dtype->rank : a.name < b.name;
  });
  uint64_t offset = 0;
  for (SafetensorsEntry& entry : entries) {
    uint64_t size = static_cast<uint64_t>(entry.dtype->size_bytes);
    for (const int64_t extent : entry.shape) size *= static_cast<uint64_t>(extent);
    entry.begin_bytes = offset;
    offset += size;
    entry.end_bytes = offset;
  }
}

std::string write_safetensors_header(const std::vector<SafetensorsEntry>& entries) {
  std::string text = R"({"__metadata__":{"format":"pt"})";
  for (const SafetensorsEntry& entry : entries) {
    text += fmt::format(R"(,{}:{{"dtype":"{}","shape":[)", python_json_string(entry.name),
                        entry.dtype->name);
    for (size_t i = 0; i < entry.shape.size(); ++i)
      text += fmt::format("{}{}", i == 0 ? "" : ",", entry.shape[i]);
    text += fmt::format(R"(],"data_offsets":[{},{}]}})", entry.begin_bytes, entry.end_bytes);
  }
  text += '}';
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string bytes;
  for (size_t i = 0; i < kLengthBytes; ++i)
    bytes += static_cast<char>(static_cast<uint64_t>(text.size()) >> (8 * i) & 0xff);
  return bytes + text;
}

}  // namespace rematch
