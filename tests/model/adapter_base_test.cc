#include "model/adapter_base.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "model/adapter.h"
#include "model/merge_adapter.h"
#include "model/tiny_checkpoint.h"

namespace rematch {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string hash_of(const std::string& directory) {
  return stored_weights_hash(*HfDir::open(directory, describe_model(directory).file_names));
}

/// PEFT's own adapter of the tiny model, which records the weights of `base`.
PeftAdapter adapter_on(const std::string& base) {
  PeftAdapter adapter = read_peft_adapter(test::source_path("tests/golden/lora/dora"));
  const AdapterBase recorded = describe_base(base);
  adapter.config.base_model = recorded.path;
  adapter.config.base.weights_hash = recorded.weights_hash;
  adapter.config.base.config_hash = recorded.config_hash;
  return adapter;
}

}  // namespace

TEST(StoredWeightsHash, ChangesWithEveryValueAndName) {
  test::CheckpointCopy copy(test::tiny_tied());
  const std::string before = hash_of(copy.path());
  EXPECT_EQ(before, hash_of(test::tiny_tied()));
  at::Tensor& bias = copy.tensor("model.visual.merger.linear_fc2.bias");
  const at::Tensor original = bias.clone();
  bias[bias.numel() - 1] += 1;
  copy.write_weights();
  EXPECT_NE(hash_of(copy.path()), before);
  bias.copy_(original);
  copy.write_weights();
  EXPECT_EQ(hash_of(copy.path()), before);
  copy.tensor("model.another.weight") = at::zeros({1});
  copy.write_weights();
  EXPECT_NE(hash_of(copy.path()), before);
}

TEST(StoredWeightsHash, DoesNotDependOnShards) {
  const test::CheckpointCopy copy(test::tiny_tied());
  fs::remove(copy.file("model.safetensors"));
  write_hf_weights(copy.path(), copy.tensors, {.max_shard_bytes = 20'000});
  ASSERT_TRUE(fs::exists(copy.file("model.safetensors.index.json")));
  EXPECT_EQ(hash_of(copy.path()), hash_of(test::tiny_tied()));
}

TEST(AdapterBase, IsTheDirectoryThatALinkLeadsToNow) {
  const test::TempDir dir;
  fs::create_directory_symlink(test::tiny_tied(), dir.file("last"));
  EXPECT_EQ(describe_base(dir.file("last")).path, fs::canonical(test::tiny_tied()));
  EXPECT_EQ(describe_base(dir.file("last")).weights_hash, hash_of(test::tiny_tied()));
}

TEST(AdapterBase, ItsRecordIsAFileNextToThoseOfPeft) {
  const test::TempDir dir;
  write_peft_adapter(dir.path(), adapter_on(test::tiny_tied()));
  EXPECT_EQ(read_json_file(dir.file("rematch_base.json"))["weights_hash"],
            hash_of(test::tiny_tied()));
  EXPECT_EQ(read_peft_adapter(dir.path()).config.base.weights_hash, hash_of(test::tiny_tied()));
  EXPECT_THAT(read_file(dir.file("adapter_config.json")), testing::Not(HasSubstr("hash")))
      << "PEFT warns about keys that it does not know";
  const auto model = Model::load(test::tiny_tied(), {});
  EXPECT_EQ(Adapter::load(*model, read_peft_adapter(dir.path()), dir.path())
                ->files()
                .config.base.weights_hash,
            hash_of(test::tiny_tied()))
      << "kept by a checkpoint of a checkpoint";
  dir.write("rematch_base.json", R"({"weights_hash": 3})");
  EXPECT_THAT(test::catch_user_error([&] { read_peft_adapter(dir.path()); }).what(),
              HasSubstr("rematch_base.json"));
}

TEST(AdapterBase, OtherWeightsAreRefusedForcedOrUnknown) {
  test::CheckpointCopy moved(test::tiny_tied());
  const PeftAdapter adapter = adapter_on(moved.path());
  const AdapterUse use{.adapter = adapter, .adapter_dir = "some/adapter", .base_dir = moved.path()};
  EXPECT_EQ(check_adapter_base(use), "");
  moved.tensor(test::kEmbedding).mul_(2);
  moved.write_weights();
  const UserError error = test::catch_user_error([&] { check_adapter_base(use); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_EQ(error.problems()[0].where, moved.path());
  EXPECT_THAT(error.problems()[0].what, HasSubstr(adapter.config.base.weights_hash));
  EXPECT_THAT(error.problems()[0].fix, HasSubstr("--force-base"));
  EXPECT_THAT(check_adapter_base({.adapter = adapter,
                                  .adapter_dir = "some/adapter",
                                  .base_dir = moved.path(),
                                  .force_base = true}),
              HasSubstr("other weights"));
  PeftAdapter older = adapter;
  older.config.base.weights_hash.clear();
  EXPECT_THAT(check_adapter_base(
                  {.adapter = older, .adapter_dir = "some/adapter", .base_dir = moved.path()}),
              HasSubstr("some/adapter has no rematch_base.json"));
}

TEST(AdapterBase, AnotherConfigIsRefusedButNotItsVersion) {
  const test::CheckpointCopy moved(test::tiny_tied());
  PeftAdapter adapter = adapter_on(moved.path());
  const AdapterUse use{.adapter = adapter, .adapter_dir = "some/adapter", .base_dir = moved.path()};
  Json config = read_json_file(moved.file("config.json"));
  config["transformers_version"] = "9.9";
  config["text_config"]["dtype"] = "bfloat16";
  write_file_atomic(moved.file("config.json"), config.dump());
  EXPECT_EQ(check_adapter_base(use), "");
  config["text_config"]["rms_norm_eps"] = 0.5;
  write_file_atomic(moved.file("config.json"), config.dump());
  EXPECT_THAT(test::catch_user_error([&] { check_adapter_base(use); }).problems()[0].error,
              HasSubstr("another config.json"));
  adapter.config.base.config_hash.clear();
  EXPECT_EQ(check_adapter_base(use), "") << "of an older version";
}

TEST(MergeAdapter, RefusesABaseThatHasMovedOn) {
  test::CheckpointCopy moved(test::tiny_tied());
  const test::TempDir dir;
  fs::create_directory(dir.file("adapter"));
  write_peft_adapter(dir.file("adapter"), adapter_on(moved.path()));
  moved.tensor(test::kEmbedding).mul_(2);
  moved.write_weights();
  MergeOptions options{.adapter_dir = dir.file("adapter"),
                       .base_dir = "",
                       .output_dir = dir.file("out"),
                       .dtype = std::nullopt};
  EXPECT_EQ(test::catch_user_error([&] { merge_adapter(options); }).kind(), ErrorKind::kData);
  EXPECT_FALSE(fs::exists(dir.file("out")));
  options.force_base = true;
  EXPECT_THAT(merge_adapter(options).base_note, HasSubstr("other weights"));
}

}  // namespace rematch
