#include "model/checkpoint/safetensors.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "checkpoint/header_bytes.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

TEST(Safetensors, RewritesAFileOfTheReferenceWriterByteForByte) {
  const std::string golden = test::source_path("tests/golden/model_safetensors.bin");
  const auto file = SafetensorsFile::open(golden);
  ASSERT_GE(file->names().size(), 20u);
  std::vector<TensorEntry> tensors;
  for (const std::string& name : file->names())
    tensors.insert(tensors.begin(), {name, file->tensor(name)});
  test::TempDir dir;
  write_safetensors(dir.file("copy"), tensors);
  EXPECT_EQ(read_file(dir.file("copy")), read_file(golden));
}

TEST(Safetensors, ReadsValuesShapesAndDtypes) {
  const auto file = SafetensorsFile::open(test::source_path("tests/golden/model_safetensors.bin"));
  EXPECT_EQ(file->tensor("scalar").item<float>(), 1.5f);
  EXPECT_EQ(file->shape("empty"), (std::vector<int64_t>{0, 4}));
  EXPECT_EQ(file->dtype("matrix.bfloat16"), at::kBFloat16);
  EXPECT_EQ(file->dtype("matrix.float8_e4m3fn"), at::kFloat8_e4m3fn);
  EXPECT_TRUE(at::equal(file->tensor("odd \"name\"\n\u00e9\u4e2d\\"), at::arange(5, at::kLong)));
  EXPECT_TRUE(at::equal(file->values("odd \"name\"\n\u00e9\u4e2d\\", 1, 3), at::arange(1, 4)));
  EXPECT_EQ(file->metadata().at("format"), "pt");
  EXPECT_TRUE(file->has("Upper"));
  EXPECT_FALSE(file->has("upper"));
}

TEST(Safetensors, TensorsOutliveTheFile) {
  test::TempDir dir;
  write_safetensors(dir.file("a"), {{"x", at::arange(4, at::kFloat)}});
  at::Tensor x = SafetensorsFile::open(dir.file("a"))->tensor("x");
  write_file_atomic(dir.file("a"), "gone");
  EXPECT_TRUE(at::equal(x, at::arange(4, at::kFloat)));
}

TEST(Safetensors, WritesViewsAsContiguous) {
  test::TempDir dir;
  const at::Tensor x = at::arange(6, at::kFloat).view({2, 3}).t();
  write_safetensors(dir.file("a"), {{"x", x}});
  EXPECT_TRUE(at::equal(SafetensorsFile::open(dir.file("a"))->tensor("x"), x));
}

TEST(Safetensors, ReadsUnalignedData) {
  test::TempDir dir;
  std::string bytes = test::safetensors_bytes(
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[1],)"
      R"("data_offsets":[1,5]}})",
      1);
  const float value = 2.5f;
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  EXPECT_EQ(SafetensorsFile::open(dir.write("u.safetensors", bytes))->tensor("b").item<float>(),
            2.5f);
}

TEST(Safetensors, NamesAMissingTensorAndItsNeighbours) {
  const auto file = SafetensorsFile::open(test::source_path("tests/golden/model_safetensors.bin"));
  const UserError error = test::catch_user_error([&] { file->tensor("matrix.bfloat17"); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(error.problems()[0].what.find("matrix.bfloat16"), std::string::npos);
}

TEST(Safetensors, RefusesDamagedFilesAndMissingOnes) {
  test::TempDir dir;
  EXPECT_EQ(test::catch_user_error([&] { SafetensorsFile::open(dir.write("cut", "12")); }).kind(),
            ErrorKind::kData);
  EXPECT_EQ(test::catch_user_error([&] { SafetensorsFile::open(dir.file("absent")); }).kind(),
            ErrorKind::kEnvironment);
}

TEST(Safetensors, ReportsAFullDisk) {
  const UserError error =
      test::catch_user_error([] { write_safetensors("/dev/full", {{"x", at::zeros({1 << 18})}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
}

}  // namespace
}  // namespace rematch
