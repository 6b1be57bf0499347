// Any bytes as model.safetensors.index.json: a data error, or names of files that stay in their
// directory.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "model/checkpoint/shard_index.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const auto& [tensor, file] : rematch::parse_shard_index(text, "fuzz")) {
      const std::filesystem::path path = std::filesystem::path("model") / std::string(file.c_str());
      REMATCH_CHECK(path.lexically_normal().parent_path() == "model", file);
    }
  } catch (const rematch::UserError& error) {
    REMATCH_CHECK(error.kind() == rematch::ErrorKind::kData, error.what());
  }
  return 0;
}
