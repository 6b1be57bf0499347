#include "model/checkpoint/safetensors.h"

#include <c10/util/accumulate.h>
#include <fmt/core.h>

#include <cstring>

#include "base/error.h"
#include "base/text.h"

namespace rematch {
namespace {

struct DtypePair {
  const char* name;
  at::ScalarType type;
};

constexpr size_t kSliceBytes = size_t{64}
                               << 20;  // most of a file that is in memory while it is copied

constexpr DtypePair kTorchTypes[] = {
    {"BOOL", at::kBool},
    {"U8", at::kByte},
    {"I8", at::kChar},
    {"F8_E5M2", at::kFloat8_e5m2},
    {"F8_E4M3", at::kFloat8_e4m3fn},
    {"I16", at::kShort},
    {"U16", at::kUInt16},
    {"F16", at::kHalf},
    {"BF16", at::kBFloat16},
    {"I32", at::kInt},
    {"U32", at::kUInt32},
    {"F32", at::kFloat},
    {"C64", at::kComplexFloat},
    {"F64", at::kDouble},
    {"I64", at::kLong},
    {"U64", at::kUInt64},
    {"F8_E8M0", at::ScalarType::Float8_e8m0fnu},
};

at::ScalarType torch_type(const SafetensorsDtype& dtype) {
  for (const DtypePair& pair : kTorchTypes) {
    if (std::strcmp(pair.name, dtype.name) == 0) return pair.type;
  }
  REMATCH_CHECK(false, dtype.name);
}

const SafetensorsDtype* file_type(const TensorEntry& entry) {
  for (const DtypePair& pair : kTorchTypes) {
    if (pair.type == entry.tensor.scalar_type()) return find_safetensors_dtype(pair.name);
  }
  REMATCH_CHECK(false, fmt::format("{} has dtype {}, which safetensors cannot hold", entry.name,
                                   at::toString(entry.tensor.scalar_type())));
}

}  // namespace

SafetensorsFile::SafetensorsFile(const std::string& path)
    : file_(path), header_(parse_safetensors_header(file_.bytes(), path)) {
  for (size_t i = 0; i < header_.entries.size(); ++i) {
    names_.push_back(header_.entries[i].name);
    index_[header_.entries[i].name] = i;
  }
}

std::shared_ptr<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  return std::shared_ptr<SafetensorsFile>(new SafetensorsFile(path));
}

const SafetensorsEntry& SafetensorsFile::entry(const std::string& name) const {
  const auto found = index_.find(name);
  if (found == index_.end()) {
    const Strings near = near_names(name, names_);
    throw data_error(
        {.error = fmt::format("tensor {} is missing", name),
         .where = file_.path(),
         .what = near.empty() ? fmt::format("{} other tensors", names_.size())
                              : fmt::format("nearest names: {}", join(near, ", ")),
         .fix = "check that the checkpoint is complete and of the right architecture"});
  }
  return header_.entries[found->second];
}

std::vector<int64_t> SafetensorsFile::shape(const std::string& name) const {
  return entry(name).shape;
}

at::ScalarType SafetensorsFile::dtype(const std::string& name) const {
  return torch_type(*entry(name).dtype);
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const std::vector<int64_t>& shape = entry(name).shape;
  return values(name, 0, c10::multiply_integers(shape)).view(shape);
}

at::Tensor SafetensorsFile::values(const std::string& name, int64_t begin, int64_t count) const {
  at::Tensor values = at::empty({count}, at::TensorOptions().dtype(dtype(name)));
  // memcpy, because files of other writers may be unaligned.
  const std::string_view stored =
      bytes(name).substr(static_cast<size_t>(begin) * values.element_size(), values.nbytes());
  REMATCH_CHECK(values.nbytes() == stored.size(),
                fmt::format("{} and {} bytes", values.nbytes(), stored.size()));
  for (size_t at = 0; at < stored.size(); at += kSliceBytes) {
    const std::string_view slice = stored.substr(at, kSliceBytes);
    std::memcpy(static_cast<char*>(values.data_ptr()) + at, slice.data(), slice.size());
    file_.drop(slice);
  }
  return values;
}

std::string_view SafetensorsFile::bytes(const std::string& name) const {
  const SafetensorsEntry& stored = entry(name);
  return std::string_view(file_.bytes())
      .substr(header_.data_begin_bytes + stored.begin_bytes, stored.end_bytes - stored.begin_bytes);
}

void write_safetensors(const std::string& path, std::vector<TensorEntry> tensors) {
  std::unordered_map<std::string, at::Tensor> by_name;
  std::vector<SafetensorsEntry> entries;
  for (const TensorEntry& tensor : tensors) {
    const bool is_new = by_name.emplace(tensor.name, tensor.tensor).second;
    REMATCH_CHECK(is_new, fmt::format("{} is written twice", tensor.name));
    SafetensorsEntry entry;
    entry.name = tensor.name;
    entry.dtype = file_type(tensor);
    entry.shape = tensor.tensor.sizes().vec();
    entries.push_back(std::move(entry));
  }
  sort_like_reference(entries);
  FileWriter writer(path);
  writer.write(write_safetensors_header(entries));
  for (const SafetensorsEntry& entry : entries) {
    const at::Tensor data = by_name.at(entry.name).detach().to(at::kCPU).contiguous();
    if (data.nbytes() > 0) writer.write(data.data_ptr(), data.nbytes());
  }
  writer.finish();
}

}  // namespace rematch
