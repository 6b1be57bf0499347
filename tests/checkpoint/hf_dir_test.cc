#include "model/checkpoint/hf_dir.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::vector<TensorEntry> three_tensors() {
  return {{"b", at::arange(4, at::kFloat)},
          {"a", at::arange(6, at::kFloat).view({2, 3})},
          {"c", at::zeros({3}, at::kBFloat16)}};
}

Problem problem_of(const std::string& directory, ErrorKind kind) {
  const UserError error = test::catch_user_error([&] { HfDir::open(directory); });
  EXPECT_EQ(error.kind(), kind);
  return error.problems()[0];
}

TEST(HfDir, ReadsWhatWasWrittenInOneFile) {
  test::TempDir dir;
  write_hf_weights(dir.path(), three_tensors());
  EXPECT_TRUE(std::filesystem::exists(dir.file("model.safetensors")));
  const auto hf = HfDir::open(dir.path());
  EXPECT_EQ(hf->names(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_TRUE(at::equal(hf->tensor("b"), at::arange(4, at::kFloat)));
  EXPECT_EQ(hf->file_name("a"), "model.safetensors");
}

TEST(HfDir, SplitsIntoShardsWithTheIndexOfTheReference) {
  test::TempDir dir;
  write_hf_weights(dir.path(), three_tensors(), {.max_shard_bytes = 24});
  EXPECT_EQ(read_file(dir.file("model.safetensors.index.json")),
            "{\n  \"metadata\": {\n    \"total_parameters\": 13,\n    \"total_size\": 46\n  },\n  "
            "\"weight_map\": {\n"
            "    \"a\": \"model-00002-of-00003.safetensors\",\n    \"b\": "
            "\"model-00001-of-00003.safetensors\",\n"
            "    \"c\": \"model-00003-of-00003.safetensors\"\n  }\n}\n");
  const auto hf = HfDir::open(dir.path());
  EXPECT_EQ(hf->shape("a"), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(hf->dtype("c"), at::kBFloat16);
  EXPECT_TRUE(at::equal(hf->tensor("a"), at::arange(6, at::kFloat).view({2, 3})));
}

TEST(HfDir, RewritesShardByShard) {
  test::TempDir from, to;
  write_hf_weights(from.path(), three_tensors(), {.max_shard_bytes = 24});
  rewrite_hf_weights(*HfDir::open(from.path()), to.path(),
                     [](const std::string& name, const at::Tensor& tensor) {
                       return name == "b" ? at::cat({tensor, tensor}) : tensor;
                     });
  const auto hf = HfDir::open(to.path());
  EXPECT_EQ(hf->shape("b"), (std::vector<int64_t>{8}));
  EXPECT_EQ(read_file(to.file("model-00002-of-00003.safetensors")),
            read_file(from.file("model-00002-of-00003.safetensors")));
  EXPECT_NE(read_file(to.file("model.safetensors.index.json")).find("\"total_size\": 62"),
            std::string::npos);
}

TEST(HfDir, NamesHfDownloadForAHubId) {
  const Problem problem = problem_of("Qwen/Qwen3-VL-2B-Instruct", ErrorKind::kEnvironment);
  EXPECT_NE(problem.fix.find("hf download Qwen/Qwen3-VL-2B-Instruct"), std::string::npos);
  EXPECT_EQ(problem_of("/nowhere/at/all", ErrorKind::kEnvironment).where, "/nowhere/at/all");
  problem_of("", ErrorKind::kEnvironment);
}

TEST(HfDir, AnIndexOfOtherFilesNextToOneFileIsNoticed) {
  test::TempDir dir;
  write_hf_weights(dir.path(), three_tensors(), {.max_shard_bytes = 24});
  EXPECT_EQ(spare_weights_warning(dir.path()), "");
  write_hf_weights(dir.path(), three_tensors());
  const std::string warning = spare_weights_warning(dir.path());
  EXPECT_EQ(warning.find(dir.file("model.safetensors") + " is used"), 0u) << warning;
  EXPECT_NE(warning.find("model-00002-of-00003.safetensors"), std::string::npos) << warning;
  EXPECT_EQ(HfDir::open(dir.path())->file_name("a"), "model.safetensors");
  dir.write("model.safetensors.index.json", R"({"weight_map": {"a": "model.safetensors"}})");
  EXPECT_EQ(spare_weights_warning(dir.path()), "");
}

TEST(HfDir, RefusesADirectoryWithoutWeights) {
  test::TempDir dir;
  EXPECT_NE(problem_of(dir.path(), ErrorKind::kData).error.find("no weights"), std::string::npos);
}

TEST(HfDir, RefusesAnIndexThatDisagreesWithItsShards) {
  test::TempDir dir;
  write_hf_weights(dir.path(), three_tensors(), {.max_shard_bytes = 24});
  const auto index = [&](const std::string& map) {
    dir.write("model.safetensors.index.json", map);
    return problem_of(dir.path(), ErrorKind::kData).error;
  };
  EXPECT_NE(
      index(R"({"weight_map":{"a":"model-00001-of-00003.safetensors"}})").find("not in its shard"),
      std::string::npos);
  EXPECT_NE(index(R"({"weight_map":{"a":"model-00009-of-00003.safetensors"}})").find("is missing"),
            std::string::npos);
  EXPECT_NE(index(R"({"weight_map":{"a":"../model.safetensors"}})").find("plain file name"),
            std::string::npos);
  EXPECT_NE(index(R"({"weight_map":{"a":"."}})").find("plain file name"), std::string::npos);
  EXPECT_NE(index(R"({"weight_map":{"a":"model-00001-of-00003.safetensors\u0000"}})")
                .find("plain file name"),
            std::string::npos);
  EXPECT_NE(index(R"({"weight_map":{"a":1}})").find("not a file name"), std::string::npos);
  EXPECT_NE(index(R"({"weights":{}})").find("no weight_map"), std::string::npos);
  EXPECT_NE(index("{").find("not valid JSON"), std::string::npos);
}

TEST(CopyCompanions, CopiesWhatBelongsToAModelAndNothingElse) {
  test::TempDir from, to;
  for (const char* name : {"config.json", "tokenizer.json", "README.md", "LICENSE", "modeling_x.py",
                           "chat_template.jinja", "additional_chat_templates/t.jinja"})
    from.write(name, name);
  for (const char* name : {"model.safetensors", "optimizer.pt", "trainer_state.json",
                           "pytorch_model.bin", "model.safetensors.index.json", ".git/config"})
    from.write(name, name);
  copy_companions(from.path(), to.path(), {"config.json"});
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(to.path())) {
    if (entry.is_regular_file())
      found.push_back(std::filesystem::relative(entry.path(), to.path()).string());
  }
  std::sort(found.begin(), found.end());
  EXPECT_EQ(found,
            (std::vector<std::string>{"LICENSE", "README.md", "additional_chat_templates/t.jinja",
                                      "chat_template.jinja", "modeling_x.py", "tokenizer.json"}));
  EXPECT_EQ(read_file(to.file("LICENSE")), "LICENSE");
}

}  // namespace
}  // namespace rematch
