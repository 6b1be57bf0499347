#include "checkpoint/safetensors.h"

#include <fmt/core.h>

#include <cstring>
#include <unordered_map>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "checkpoint/safetensors_header.h"

namespace rematch {
namespace {

struct DtypePair {
  const char* name;
  at::ScalarType type;
};

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

struct SafetensorsFile::Impl {
  explicit Impl(const std::string& path)
      : file(path), header(parse_safetensors_header(file.bytes(), path)) {
    for (size_t i = 0; i < header.entries.size(); ++i) {
      names.push_back(header.entries[i].name);
      index[header.entries[i].name] = i;
    }
  }

  const SafetensorsEntry& entry(const std::string& name) const {
    const auto found = index.find(name);
    if (found == index.end()) {
      const std::vector<std::string> near = near_names(name, names);
      throw UserError(
          ErrorKind::kData,
          {.error = fmt::format("tensor {} is missing", name),
           .where = file.path(),
           .what = near.empty() ? fmt::format("{} other tensors", names.size())
                                : fmt::format("nearest names: {}", join(near, ", ")),
           .fix = "check that the checkpoint is complete and of the right architecture"});
    }
    return header.entries[found->second];
  }

  MappedFile file;
  SafetensorsHeader header;
  std::vector<std::string> names;
  std::unordered_map<std::string, size_t> index;
};

SafetensorsFile::SafetensorsFile() = default;
SafetensorsFile::~SafetensorsFile() = default;

std::shared_ptr<SafetensorsFile> SafetensorsFile::open(const std::string& path) {
  std::shared_ptr<SafetensorsFile> file(new SafetensorsFile);
  file->impl_ = std::make_unique<Impl>(path);
  return file;
}

const std::vector<std::string>& SafetensorsFile::names() const { return impl_->names; }
bool SafetensorsFile::has(const std::string& name) const { return impl_->index.count(name) != 0; }
std::vector<int64_t> SafetensorsFile::shape(const std::string& name) const {
  return impl_->entry(name).shape;
}
at::ScalarType SafetensorsFile::dtype(const std::string& name) const {
  return torch_type(*impl_->entry(name).dtype);
}
const std::map<std::string, std::string>& SafetensorsFile::metadata() const {
  return impl_->header.metadata;
}

at::Tensor SafetensorsFile::tensor(const std::string& name) const {
  const SafetensorsEntry& entry = impl_->entry(name);
  at::Tensor tensor = at::empty(entry.shape, at::TensorOptions().dtype(torch_type(*entry.dtype)));
  // Copied byte by byte: files of other writers may be unaligned.
  const size_t size_bytes = entry.end_bytes - entry.begin_bytes;
  REMATCH_CHECK(tensor.nbytes() == size_bytes,
                fmt::format("{} against {}", tensor.nbytes(), size_bytes));
  if (size_bytes > 0) {
    std::memcpy(tensor.data_ptr(),
                impl_->file.bytes().data() + impl_->header.data_begin_bytes + entry.begin_bytes,
                size_bytes);
  }
  return tensor;
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
