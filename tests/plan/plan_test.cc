#include "tools/plan/plan.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "plan/models.h"
#include "support/capture.h"
#include "tools/plan/row_memory.h"

namespace rematch {
namespace {

using test::bytes_of;

constexpr int64_t kDeltaParameters = 852985920;

TEST(Plan, FullTrainingInBfloat16KeepsEighteenBytesAParameter) {
  const int64_t count = test::kPublicModels[2].total;
  const MemoryPlan plan = make_plan(test::eight_b());
  EXPECT_EQ(bytes_of(plan, "update", "weights"), 2 * count);
  EXPECT_EQ(bytes_of(plan, "update", "masters"), 4 * count);
  EXPECT_EQ(bytes_of(plan, "update", "moments"), 8 * count);
  EXPECT_EQ(bytes_of(plan, "update", "gradients"), 4 * count);
  EXPECT_EQ(make_plan(test::eight_b()).least_bytes, 18 * count);
  EXPECT_FALSE(plan.fits);
}

// LoRA on 4-bit weights, the README's rows: checkpointing, native rollouts.
PlanRequest four_bit_request(size_t model, double gib) {
  PlanRequest request = test::request_of(test::kPublicModels[model], gib);
  request.gradient_checkpointing = Checkpointing::kOn;
  request.tuner.train_type = TrainType::kLora;
  request.four_bit = FourBitSettings{};
  return request;
}

TEST(Plan, FourBitWeightsTakeABytePerTwoValuesAndAFloatPerBlock) {
  PlanRequest request = four_bit_request(2, 24);
  const TrainedParameters trained =
      trained_parameters(request.model, request.tuner, request.four_bit);
  // Embedding, head, norms, biases, positions and the patch convolution stay in bfloat16.
  EXPECT_GT(trained.num_packed, trained.counts.total * 8 / 10);
  EXPECT_EQ(bytes_of(make_plan(request), "update", "weights"),
            2 * (trained.counts.total - trained.num_packed) + trained.packed_bytes +
                4 * trained.num_adapter);
  EXPECT_NEAR(static_cast<double>(trained.packed_bytes) / static_cast<double>(trained.num_packed),
              0.5 + 4.0 / 64, 1e-3);
  request.four_bit->use_double_quant = true;
  const TrainedParameters doubled =
      trained_parameters(request.model, request.tuner, request.four_bit);
  EXPECT_NEAR(static_cast<double>(doubled.packed_bytes) / static_cast<double>(doubled.num_packed),
              0.5 + 1.0 / 64, 1e-3);
}

TEST(Plan, APackedModuleCannotBeTrainedInFull) {
  PlanRequest request = four_bit_request(2, 24);
  request.tuner.targets.modules_to_save = {"down_proj"};
  const UserError error = test::catch_user_error([&] { make_plan(request); });
  EXPECT_EQ(error.problems()[0].where, "tuner.modules_to_save");
  request.tuner.targets.modules_to_save = {"embed_tokens"};
  EXPECT_GT(make_plan(request).num_trainable, 0);
}

TEST(Plan, PartsOfTheTowerMayBeTrainedAlone) {
  PlanRequest request = test::request_of(test::kPublicModels[2], 80);
  request.tuner.train_type = TrainType::kLora;
  request.tuner.targets.target_modules = {"q_proj"};
  const int64_t without = make_plan(request).peak_bytes;
  for (const char* part : {"merger", "visual.blocks.26"}) {
    request.tuner.targets.modules_to_save = {part};
    EXPECT_GT(make_plan(request).peak_bytes, without) << part;
  }
}

TEST(Plan, FourBitRolloutsHaveNoMergedCopy) {
  for (const char* backend : {"native", "hf"}) {
    for (const bool on_gpu : {false, true}) {
      PlanRequest request = four_bit_request(2, 24);
      request.backend = backend;
      request.device.on_gpu = on_gpu;
      EXPECT_EQ(bytes_of(make_plan(request), "rollout", "engine weights"), 0) << backend;
      request.four_bit.reset();
      EXPECT_GT(bytes_of(make_plan(request), "rollout", "engine weights"), 0) << backend;
    }
  }
}

TEST(Plan, FourBitLoraFitsOnTheCardsOfTheReadme) {
  EXPECT_GE(largest_row(four_bit_request(2, 24)), 4096);  // 8B
  EXPECT_GE(largest_row(four_bit_request(1, 16)), 4096);  // 4B
  PlanRequest full = four_bit_request(2, 24);
  full.four_bit.reset();
  EXPECT_EQ(largest_row(full), 0);
}

// Qwen3.5-0.8B as published: 18 layers with the delta rule, 6 with attention.
PlanRequest delta_request(int64_t num_layers = 24) {
  const test::TempDir dir;
  dir.write("config.json", fmt::format(R"({{"model_type": "qwen3_5", "tie_word_embeddings": true,
"text_config": {{"vocab_size": 248320, "hidden_size": 1024, "intermediate_size": 3584,
"num_hidden_layers": {},
"num_attention_heads": 8, "num_key_value_heads": 2, "linear_num_key_heads": 16,
"linear_num_value_heads": 16}},
"vision_config": {{"depth": 12, "hidden_size": 768, "intermediate_size": 3072,
"num_heads": 12, "out_hidden_size": 1024}}}})",
                                       num_layers));
  PlanRequest request{.model = describe_model(dir.path())};
  request.device = {.on_gpu = false, .memory_bytes = int64_t{24} << 30};
  request.backend = "hf";
  request.batches.gradient_accumulation_steps = 16;
  request.generation.batch_size = 4;
  return request;
}

TEST(Plan, CountsTheParametersOfAPublishedDeltaModel) {
  // transformers' num_parameters() of that configuration, on the meta device.
  EXPECT_EQ(trained_parameters(delta_request().model, {}).counts.total, kDeltaParameters);
}

TEST(Plan, StatesOfTheDeltaRuleDoNotGrowWithTheAnswers) {
  PlanRequest request = delta_request();
  const int64_t states = bytes_of(make_plan(request), "rollout", "states"),
                keys = bytes_of(make_plan(request), "rollout", "kv cache");
  // A float32 state of 1 MiB and a window of 3 tokens for each of 18 layers, and their copy.
  EXPECT_EQ(states, 2 * 4 * 18 * ((int64_t{1} << 20) + 3 * 6144 * request.value_bytes));
  request.sample_tokens *= 2;
  EXPECT_EQ(bytes_of(make_plan(request), "rollout", "states"), states);
  EXPECT_GT(bytes_of(make_plan(request), "rollout", "kv cache"), keys);
}

TEST(Plan, RowsOfRepeatedGroupsOfLayersAreMeasuredInFewOfThem) {
  // 12 layers are three groups of four, of which none is left out.
  const auto memory_of = [](int64_t num_layers) {
    const PlanRequest request = delta_request(num_layers);
    return RowMeter().measure(request.model, trained_parameters(request.model, {}),
                              {.value_bytes = 2}, {.num_tokens = 4096, .num_visual_tokens = 2048});
  };
  const RowMemory eight = memory_of(8), twelve = memory_of(12), twenty_four = memory_of(24);
  EXPECT_GT(twelve.text, eight.text);
  EXPECT_NEAR(static_cast<double>(twenty_four.text),
              static_cast<double>(twelve.text + 3 * (twelve.text - eight.text)), 1e6);
  EXPECT_EQ(twenty_four.text_transient, twelve.text_transient);
}

TEST(Plan, Float32WeightsAreTheirOwnMasters) {
  PlanRequest request = test::eight_b();
  request.value_bytes = 4;
  EXPECT_EQ(bytes_of(make_plan(request), "update", "masters"), 0);
  EXPECT_EQ(make_plan(request).least_bytes, 16 * test::kPublicModels[2].total);
}

RowMemory row_memory(const ModelDescription& model, const TrainedParameters& trained,
                     const Computation& computation, const RowShape& row) {
  return RowMeter().measure(model, trained, computation, row);
}

// By hand for the tiny model, a token of a layer in float32: input 32, normed 32, heads before
// their norms 64 + 32, rotated 64 + 32, values 32, attended 64, second input 32, normed 32, gate,
// its activation, up and their product 4 · 64; statistics 1 + 6 + 4 + 1.
TEST(Plan, ActivationsOfALayerAreTheInputsOfItsOperators) {
  ModelDescription model = describe_model(test::tiny_dir());
  const TrainedParameters trained = trained_parameters(model, {});
  const RowShape row{.num_tokens = 10};
  const int64_t three = row_memory(model, trained, {}, row).text;
  model.text.layers.pop_back();
  const int64_t two = row_memory(model, trained, {}, row).text;
  EXPECT_EQ(three - two, 10 * 4 * (32 + 32 + 96 + 96 + 32 + 64 + 32 + 32 + 256 + 12));
  EXPECT_EQ(row_memory(model, trained, {}, row).vision, 0);
}

// Attention reads queries, keys and values of a packed row from copies, and its result is one.
TEST(Plan, APackedRowKeepsACopyOfTheAttendedHeads) {
  const ModelDescription model = describe_model(test::tiny_dir());
  const TrainedParameters trained = trained_parameters(model, {});
  const int64_t whole = row_memory(model, trained, {}, {.num_tokens = 1000}).text,
                packed =
                    row_memory(model, trained, {}, {.num_tokens = 1000, .is_packed = true}).text;
  EXPECT_NEAR(static_cast<double>(packed - whole), 3 * 1000 * 4 * 64, 100'000);
}

TEST(Plan, CheckpointingKeepsOneInputALayer) {
  ModelDescription model = describe_model(test::tiny_dir());
  const TrainedParameters trained = trained_parameters(model, {});
  const Computation computation{.checkpointing = Checkpointing::kOn};
  const RowShape row{.num_tokens = 10};
  const int64_t three = row_memory(model, trained, computation, row).text;
  model.text.layers.pop_back();
  EXPECT_EQ(three - row_memory(model, trained, computation, row).text, 10 * 4 * 32);
}

// By hand for the tiny model: both inputs of 32, query, key and value 64 + 32 + 32, gate and up.
TEST(Plan, SelectiveCheckpointingKeepsTheResultsOfProductsToo) {
  ModelDescription model = describe_model(test::tiny_dir());
  const TrainedParameters trained = trained_parameters(model, {});
  const Computation computation{.checkpointing = Checkpointing::kSelective};
  const RowShape row{.num_tokens = 10};
  const int64_t three = row_memory(model, trained, computation, row).text;
  model.text.layers.pop_back();
  EXPECT_EQ(three - row_memory(model, trained, computation, row).text,
            10 * 4 * (32 + 128 + 32 + 128));
}

TEST(Plan, AFrozenTowerKeepsNothing) {
  PlanRequest request = test::eight_b();
  request.tuner.freeze = {.vit = true, .aligner = true};
  const TrainedParameters trained = trained_parameters(request.model, request.tuner);
  EXPECT_EQ(row_memory(request.model, trained, {.value_bytes = 2, .on_gpu = true},
                       {.num_tokens = 100, .num_visual_tokens = 50})
                .vision,
            0);
}

TEST(Plan, LongerRowsTakeMore) {
  PlanRequest request = test::eight_b(141);
  request.tuner.train_type = TrainType::kLora;
  int64_t before = 0;
  for (const int64_t tokens : {512, 1024, 4096, 16384}) {
    request.sample_tokens = tokens;
    const int64_t peak = make_plan(request).peak_bytes;
    EXPECT_GT(peak, before);
    before = peak;
  }
}

TEST(Plan, TheLargestRowFitsAndALongerOneDoesNot) {
  PlanRequest request = test::eight_b();
  request.tuner.train_type = TrainType::kLora;
  request.gradient_checkpointing = Checkpointing::kOn;
  request.sample_tokens = largest_row(request);
  ASSERT_GT(request.sample_tokens, 0);
  EXPECT_TRUE(make_plan(request).fits);
  request.sample_tokens += 64;
  EXPECT_FALSE(make_plan(request).fits);
}

TEST(Plan, TheCacheOfNativeRolloutsIsBoundedByItsKeyAndByFreeMemory) {
  PlanRequest request = test::eight_b();
  request.tuner.train_type = TrainType::kLora;
  constexpr int64_t per_token = 36 * 2 * 8 * 128 * 2, page = 256;  // of flash attention
  EXPECT_EQ(bytes_of(make_plan(request), "rollout", "kv cache"),
            (16 * (4096 + page) + page) * per_token)
      << "and a block for copies";
  request.generation.native.kv_cache_gib = 2;
  const int64_t bounded = bytes_of(make_plan(request), "rollout", "kv cache");
  EXPECT_LE(bounded, int64_t{2} << 30);
  EXPECT_GT(bounded + page * per_token, int64_t{2} << 30);
}

TEST(Plan, StatesOfNativeRolloutsDoNotGrowWithTheSamples) {
  // Three layers with four value heads of 8 × 8 and a window of three tokens of 64 channels.
  PlanRequest request = test::eight_b();
  request.model = describe_model(test::tiny_dir("delta_tied"));
  request.device.memory_bytes = int64_t{1} << 40;
  const auto states = [&](bool on_gpu, int64_t tokens) {
    request.device.on_gpu = on_gpu;
    request.sample_tokens = tokens;
    return bytes_of(make_plan(request), "rollout", "states");
  };
  EXPECT_EQ(states(true, 512), 16 * 3 * (4 * 8 * 8 * 4 + 3 * 64 * 2)) << "16 samples at a time";
  EXPECT_EQ(states(true, 4096), states(true, 512));
  // The kernels of the CPU keep two chunks of 16 tokens, in panels of 32 values.
  EXPECT_EQ(states(false, 512), 16 * 3 * 2 * 4 * (8 * 32 + 16 * 32 + 2 * (8 * 32 + 32 * 32 + 32)));
  EXPECT_EQ(states(false, 4096), states(false, 512));
}

TEST(Plan, VllmTakesItsShareUntilItSleeps) {
  PlanRequest request = test::eight_b();
  request.backend = "vllm";
  request.vllm.sleep_level = 0;
  const auto share = static_cast<int64_t>(0.45 * 80 * 1024 * 1024 * 1024);
  MemoryPlan plan = make_plan(request);
  EXPECT_EQ(bytes_of(plan, "rollout", "vllm"), share);
  EXPECT_EQ(bytes_of(plan, "m-step", "vllm"), share);
  request.vllm.sleep_level.reset();
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "vllm"), 0) << "the default on a GPU";
}

TEST(Plan, AtSleepLevelOneVllmKeepsItsWeightsInHostMemory) {
  PlanRequest request = test::eight_b();
  request.backend = "vllm";
  const int64_t weights = 2 * test::kPublicModels[2].total;
  MemoryPlan plan = make_plan(request);
  for (const char* phase : {"m-step", "update", "save"})
    EXPECT_EQ(plan.phase(phase).host_bytes, (NamedBytes{{"vllm weights", weights}})) << phase;
  EXPECT_TRUE(plan.phase("rollout").host_bytes.empty());
  request.device.num_ranks = 8;
  request.vllm.tensor_parallel_size = 4;
  EXPECT_EQ(make_plan(request).phase("save").host_bytes,
            (NamedBytes{{"vllm weights", weights / 4}}));
  request.vllm.sleep_level = 2;
  EXPECT_TRUE(make_plan(request).phase("m-step").host_bytes.empty());
}

TEST(Plan, OffloadMovesTheTrainingStateToTheHostDuringVllmRolloutsOnly) {
  PlanRequest request = test::eight_b();
  request.offload = {.enabled = true, .model = true, .optimizer = true};
  EXPECT_GT(bytes_of(make_plan(request), "rollout", "weights"), 0);  // native generates with them
  request.backend = "vllm";
  const MemoryPlan plan = make_plan(request);
  EXPECT_EQ(bytes_of(plan, "rollout", "weights"), 0);
  EXPECT_EQ(bytes_of(plan, "rollout", "moments"), 0);
  EXPECT_EQ(plan.phase("rollout").host_bytes.size(), 3u);
  EXPECT_GT(bytes_of(plan, "m-step", "moments"), 0);
}

TEST(Plan, OnTheHostASavedFileAddsToThePeak) {
  PlanRequest request = test::eight_b();
  request.device.on_gpu = false;
  const MemoryPlan plan = make_plan(request);
  EXPECT_EQ(plan.peak_phase, "save");
  // masters and moments
  EXPECT_EQ(bytes_of(plan, "save", "checkpoint pages"), 12 * test::kPublicModels[2].total);
  EXPECT_EQ(plan.peak_bytes,
            plan.phase("m-step").total() + bytes_of(plan, "save", "checkpoint pages"));
  request.saves_state = false;
  EXPECT_LT(make_plan(request).peak_bytes, plan.peak_bytes);
  EXPECT_EQ(bytes_of(make_plan(test::eight_b()), "save", "checkpoint pages"), 0);
}

TEST(Plan, AnUnknownDeviceIsNeverTooSmall) {
  const MemoryPlan plan = make_plan(test::eight_b(0));
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.usable_bytes, 0);
}

}  // namespace
}  // namespace rematch
