#include "vision/suite_golden.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "model/vision/patches.h"
#include "support/capture.h"

namespace rematch::test {
namespace {

void expect_refused_row(const std::string& path, const Json& row) {
  const UserError error = catch_user_error([&] {
    const ImageSize size = read_image_size(path);
    processed_size(size, {.do_resize = true}, path);
  });
  EXPECT_NE(error.problems()[0].error.find(row["refused"].get<std::string>()), std::string::npos)
      << path << ": " << error.what();
}

void expect_row(const std::string& directory, const Json& row) {
  const std::string path = directory + "/" + row["file"].get<std::string>();
  if (row.contains("refused")) return expect_refused_row(path, row);
  const std::string model = row["model"].get<std::string>(),
                    backend = row["backend"].get<std::string>();
  SCOPED_TRACE(path + " " + model + " " + backend);
  const PatchOptions options = PatchOptions::from_model_dir(
      directory + "/" + model, {.image_backend = value_of<ImageBackend>(backend).value()});
  const ImageSize size = read_image_size(path);
  const GridThw grid = processed_grid(size, options, path);
  EXPECT_EQ(grid, row["grid"].get<GridThw>());
  EXPECT_EQ(grid[1] * grid[2] / (options.merge_size * options.merge_size),
            row["tokens"].get<int64_t>());
  const Patches patches = patchify(load_image(path), options, path);
  EXPECT_EQ(patches.grid_thw, grid);
  const std::string expected = read_file(path + "." + model + "." + backend + ".f32");
  ASSERT_EQ(patches.pixel_values.size() * sizeof(float), expected.size());
  EXPECT_EQ(std::memcmp(patches.pixel_values.data(), expected.data(), expected.size()), 0);
}

}  // namespace

void expect_suite_as_auto_processor(const std::string& directory) {
  std::set<std::string> files;
  for (const std::string& line : split(read_file(directory + "/manifest.jsonl"), '\n')) {
    if (line.empty()) continue;
    const Json row = parse_json(line, "manifest.jsonl");
    files.insert(row["file"].get<std::string>());
    expect_row(directory, row);
  }
  EXPECT_GE(files.size(), 60u);
}

}  // namespace rematch::test
