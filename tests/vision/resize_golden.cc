#include "vision/resize_golden.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/vision/patches.h"
#include "model/vision/resample.h"

namespace rematch::test {
namespace {

template <typename T>
void expect_bytes(const std::vector<T>& values, const std::string& path) {
  const std::string expected = read_file(path);
  ASSERT_EQ(values.size() * sizeof(T), expected.size()) << path;
  EXPECT_EQ(std::memcmp(values.data(), expected.data(), expected.size()), 0) << path;
}

void expect_processed(const std::string& directory, const Json& row) {
  const std::string file = row["file"].get<std::string>(), path = directory + "/" + file;
  const std::string model = row["model"].get<std::string>(),
                    backend = row["backend"].get<std::string>();
  const PatchOptions options = PatchOptions::from_model_dir(
      directory + "/" + model, {.image_backend = value_of<ImageBackend>(backend).value()});
  const ImageSize size = read_image_size(path);
  if (row.contains("refused")) {
    EXPECT_THROW(processed_size(size, options, file), UserError) << file;
    return;
  }
  const GridThw grid{row["grid"][0].get<int64_t>(), row["grid"][1].get<int64_t>(),
                     row["grid"][2].get<int64_t>()};
  EXPECT_EQ(processed_grid(size, options, file), grid) << file << ": from the header";
  const std::string target = path + "." + model + "." + backend;
  const Image image = load_image(path);
  if (std::filesystem::exists(target + ".f32")) {
    expect_bytes(patchify(image, options, file).pixel_values, target + ".f32");
  } else {
    expect_bytes(resize_bicubic(image, processed_size(size, options, file), options.backend).rgb,
                 target + ".rgb");
  }
}

}  // namespace

void expect_processed_as_transformers(const std::string& directory) {
  int num_rows = 0;
  for (const std::string& line : split(read_file(directory + "/manifest.jsonl"), '\n')) {
    if (line.empty()) continue;
    ++num_rows;
    expect_processed(directory, parse_json(line, "manifest.jsonl"));
  }
  EXPECT_GE(num_rows, 60);
}

}  // namespace rematch::test
