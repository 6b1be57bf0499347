#include "engine/rollout/vllm/vllm_checks.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/json.h"
#include "engine/rollout/vllm/engine_description.h"
#include "engine/rollout/vllm/rgb_image.h"
#include "program/config/config.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

constexpr int64_t kGib = int64_t{1} << 30;

VllmOptions options() {
  return {{.tensor_parallel_size = 1, .max_model_len = 512},
          1,
          test::source_path("tests/shapes/model")};
}

Problem refusal(const VllmOptions& given, const MemoryBytes& memory = {}) {
  const UserError error = test::catch_user_error([&] { check_vllm_arithmetic(given, memory); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
  return error.problems().front();
}

}  // namespace

TEST(VllmChecks, OneRankOnACpuIsFine) {
  EXPECT_NO_THROW(check_vllm_arithmetic(options(), {16 * kGib, 16 * kGib}));
}

TEST(VllmChecks, RanksOfACpuMayShareAnEngineAndShareItsMemory) {
  VllmOptions given = options();
  given.tensor_parallel_size = given.world_size = 2;
  EXPECT_NO_THROW(check_vllm_arithmetic(given, {16 * kGib, 16 * kGib}));
  const int64_t whole = rank_memory(given).total;
  given.ranks_on_host = 2;
  EXPECT_EQ(rank_memory(given).total, whole / 2);
}

TEST(VllmChecks, RefusesRanksThatAreNoMultipleOfTensorParallelSize) {
  VllmOptions given = options();
  given.on_cpu = false;
  given.tensor_parallel_size = 4;
  given.world_size = 6;
  const Problem problem = refusal(given);
  EXPECT_EQ(problem.what,
            "world_size 6 is not a multiple of tensor_parallel_size 4 (the default is 4)");
  EXPECT_EQ(problem.where, "custom.extra.rollout_matching.vllm.tensor_parallel_size");
  EXPECT_NE(problem.fix.find("set vllm.tensor_parallel_size: 2 or 1, or start 8 processes"),
            std::string::npos)
      << problem.fix;
}

TEST(VllmChecks, RefusesAnEngineAcrossHostsByTheirNames) {
  EXPECT_NO_THROW(check_vllm_hosts({"a", "a", "b", "b"}, 2));
  const UserError error = test::catch_user_error([] { check_vllm_hosts({"a", "a", "a", "b"}, 2); });
  EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
  EXPECT_EQ(error.problems().front().what, "tensor_parallel_size 2: rank 2 is on a, rank 3 on b");
}

TEST(VllmChecks, RefusesHeadsThatCannotBeDivided) {
  VllmOptions given = options();
  given.on_cpu = false;
  given.tensor_parallel_size = 4;  // of 6 heads
  given.world_size = 4;
  EXPECT_NE(refusal(given).what.find("6 attention heads"), std::string::npos);
  given.tensor_parallel_size = given.world_size = 2;
  EXPECT_NO_THROW(check_vllm_arithmetic(given, {}));
}

TEST(VllmChecks, RefusesWhenMemoryIsShort) {
  const Problem problem = refusal(options(), {kGib / 4, kGib / 4});
  EXPECT_NE(problem.error.find("memory"), std::string::npos);
  EXPECT_NE(problem.fix.find("gpu_memory_utilization"), std::string::npos);
  VllmOptions long_answers = options();
  long_answers.max_model_len = 10'000'000;
  EXPECT_NE(refusal(long_answers, {8 * kGib, 8 * kGib}).what.find("10000000 tokens"),
            std::string::npos);
}

TEST(VllmChecks, LeavesAMissingModelDirectoryToWhoeverLoadsIt) {
  VllmOptions given = options();
  given.model_dir = "/nowhere";
  EXPECT_NO_THROW(check_vllm_arithmetic(given, {kGib, kGib}));
}

TEST(VllmChecks, RefusesPromptsThatMaxModelLenCannotHold) {
  VllmOptions given = options();
  EXPECT_NO_THROW(check_vllm_lengths(given, 352, 160, "a.jsonl:3"));
  const UserError error =
      test::catch_user_error([&] { check_vllm_lengths(given, 353, 160, "a.jsonl:3"); });
  const Problem& problem = error.problems().front();
  EXPECT_EQ(problem.where, "a.jsonl:3");
  EXPECT_NE(problem.what.find("513"), std::string::npos);
  EXPECT_NE(problem.fix.find("vllm.max_model_len: 513"), std::string::npos);
  EXPECT_NE(problem.fix.find("rollout_backend: hf"), std::string::npos);
  given.max_model_len = 0;
  EXPECT_NO_THROW(check_vllm_lengths(given, 1'000'000, 160, "a.jsonl:3"));
}

TEST(VllmChecks, SettlesTheModelLengthByConfigurationDataAndPositions) {
  VllmOptions given = options();
  set_max_model_len(given, 100, 60, "a.jsonl:1");
  EXPECT_EQ(given.max_model_len, 512) << "as configured";
  given.max_model_len = 0;
  set_max_model_len(given, 100, 60, "a.jsonl:1");
  EXPECT_EQ(given.max_model_len, 160) << "as the data ask for";
  given.max_model_len = 1'000'000;
  set_max_model_len(given, 100, 60, "a.jsonl:1");
  EXPECT_EQ(given.max_model_len, 4096) << "the model has no more positions";
  const UserError error =
      test::catch_user_error([&] { set_max_model_len(given, 4000, 97, "a.jsonl:1"); });
  EXPECT_NE(error.problems().front().what.find("max_position_embeddings"), std::string::npos);
  EXPECT_NE(error.problems().front().fix.find("rollout_backend: hf"), std::string::npos);
}

TEST(VllmChecks, TheCacheStaysWithinItsShareOfTheMemory) {
  const int64_t plenty = kv_cache_bytes(options(), {64 * kGib, 64 * kGib});
  const int64_t tight = kv_cache_bytes(options(), {kGib, kGib});
  EXPECT_LT(tight, plenty);
  EXPECT_LE(tight, kGib / 2);
  EXPECT_GE(tight, 512 * 4 * 2 * 2 * 32 * 4) << "room for one sequence at least";
}

TEST(EngineDescription, HandsOverWhatTheConfigurationSays) {
  VllmOptions given = options();
  given.engine_args = {{"enable_prefix_caching", "false"},
                       {"limit_mm_per_prompt", R"({"image":1,"video":0})"},
                       {"load_format", "\"dummy\""}};
  given.max_num_seqs = 7;
  given.gpu_memory_utilization = 0.25;
  const Json description =
      parse_json(engine_description(given, {16 * kGib, 16 * kGib}), "description");
  const Json& arguments = description["engine_args"];
  EXPECT_EQ(arguments["enable_prefix_caching"], false);
  EXPECT_EQ(arguments["max_num_seqs"], 7);
  EXPECT_EQ(arguments["gpu_memory_utilization"], 0.25);
  EXPECT_EQ(arguments["max_model_len"], 512);
  EXPECT_EQ(arguments["dtype"], "float32");
  EXPECT_EQ(arguments["mm_processor_kwargs"]["do_resize"], false) << "never resized";
  EXPECT_EQ(arguments["enforce_eager"], true) << "on a CPU";
  EXPECT_EQ(arguments["load_format"], "auto")
      << "dummy weights leave noise in what is not a parameter";
  EXPECT_EQ(engine_description(given, {16 * kGib, kGib}),
            engine_description(given, {16 * kGib, 2 * kGib}))
      << "the same engine";
}

TEST(EngineDescription, NamesTheGpuOfAProcess) {
  VllmOptions given = options();
  given.on_cpu = false;
  const auto described = [&] { return parse_json(engine_description(given, {}), "description"); };
  EXPECT_FALSE(described().contains("group")) << "vLLM starts on the first GPU";
  given.device_index = 2;
  const Json group = described()["group"];
  EXPECT_EQ(group["device"], 2);
  EXPECT_EQ(group["size"], given.tensor_parallel_size);
  EXPECT_EQ(group["host"], "") << "its only member needs no store of others";
}

TEST(EngineDescription, LetsTheEngineSleepOnAGpuUnlessToldOtherwise) {
  VllmOptions given = options();
  const auto sleeps = [&] {
    return parse_json(engine_description(given, {}), "description")["engine_args"].contains(
        "enable_sleep_mode");
  };
  EXPECT_FALSE(sleeps()) << "on a CPU";
  given.on_cpu = false;
  EXPECT_TRUE(sleeps());
  given.sleep_level = 0;
  EXPECT_FALSE(sleeps());
}

TEST(VllmExamples, AreConfigurationsThatLoad) {
  const Settings cpu =
      load_config(test::source_path("configs/demo/stage2_vllm.yaml"), {"model.model=/m"}).settings;
  EXPECT_EQ(cpu.backend, "vllm");
  EXPECT_EQ(cpu.vllm.tensor_parallel_size, 1);
  const Settings gpu = load_config(test::source_path("configs/stage2_vllm_4gpu.yaml"), {}).settings;
  EXPECT_EQ(gpu.backend, "vllm");
  EXPECT_EQ(gpu.vllm.tensor_parallel_size, 4);
  EXPECT_EQ(gpu.vllm.max_model_len, 12000) << "from global_max_length";
}

RC_GTEST_PROP(RgbImage, IsThePictureThatWasPatchified, ()) {
  PatchOptions patches;
  if (*rc::gen::arbitrary<bool>()) {
    patches.image_mean = {0.48145466, 0.4578275, 0.40821073};
    patches.image_std = {0.26862954, 0.26130258, 0.27577711};
  }
  Image image{.width_px = 32 * *rc::gen::inRange(1, 4), .height_px = 32 * *rc::gen::inRange(1, 4)};
  auto state = *rc::gen::arbitrary<uint32_t>();
  image.rgb.resize(static_cast<size_t>(image.width_px * image.height_px * 3));
  for (uint8_t& level : image.rgb) {
    state = state * 1664525u + 1013904223u;
    level = static_cast<uint8_t>(state >> 24);
  }
  const Image back = rgb_image(patchify(image, patches, "test"), patches);
  RC_ASSERT(back.width_px == image.width_px);
  RC_ASSERT(back.height_px == image.height_px);
  RC_ASSERT(back.rgb == image.rgb);
  RC_ASSERT(rgb_image(cut_into_levels(image, patches), patches).rgb == image.rgb);
}

}  // namespace rematch
