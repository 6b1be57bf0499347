#include "plan/plan.h"

#include <gtest/gtest.h>

#include "plan/models.h"
#include "plan/row_memory.h"

namespace rematch {
namespace {

int64_t bytes_of(const MemoryPlan& plan, const std::string& phase, const std::string& name) {
  for (const auto& [found, bytes] : plan.phase(phase).bytes) {
    if (found == name) return bytes;
  }
  return 0;
}

PlanRequest eight_b(double gib = 80) { return test::request_of(test::kPublicModels[2], gib); }

TEST(Plan, FullTrainingInBfloat16KeepsEighteenBytesAParameter) {
  const int64_t count = test::kPublicModels[2].total;
  const MemoryPlan plan = make_plan(eight_b());
  EXPECT_EQ(bytes_of(plan, "update", "weights"), 2 * count);
  EXPECT_EQ(bytes_of(plan, "update", "masters"), 4 * count);
  EXPECT_EQ(bytes_of(plan, "update", "moments"), 8 * count);
  EXPECT_EQ(bytes_of(plan, "update", "gradients"), 4 * count);
  EXPECT_EQ(least_bytes(eight_b()), 18 * count);
  EXPECT_FALSE(plan.fits);
}

TEST(Plan, Float32WeightsAreTheirOwnMasters) {
  PlanRequest request = eight_b();
  request.value_bytes = 4;
  EXPECT_EQ(bytes_of(make_plan(request), "update", "masters"), 0);
  EXPECT_EQ(least_bytes(request), 16 * test::kPublicModels[2].total);
}

TEST(Plan, ZeroStagesSplitTheOptimizerThenTheGradients) {
  PlanRequest request = eight_b();
  request.device.num_ranks = 4;
  const MemoryPlan none = make_plan(request);
  request.device.zero_stage = 1;
  const MemoryPlan one = make_plan(request);
  request.device.zero_stage = 2;
  const MemoryPlan two = make_plan(request);
  EXPECT_EQ(4 * bytes_of(one, "update", "moments"), bytes_of(none, "update", "moments"));
  EXPECT_EQ(4 * bytes_of(one, "update", "masters"), bytes_of(none, "update", "masters"));
  EXPECT_EQ(bytes_of(one, "update", "gradients"), bytes_of(none, "update", "gradients"));
  EXPECT_EQ(4 * bytes_of(two, "update", "gradients"), bytes_of(none, "update", "gradients"));
  EXPECT_EQ(bytes_of(two, "update", "weights"), bytes_of(none, "update", "weights"));
}

// Each rank adds up its own rows, or with exact_ranks those of all ranks for the parameters it
// owns. Messages lie in host memory.
TEST(Plan, SeveralRanksHoldSumsAndGradientsInFlight) {
  const int64_t count = test::kPublicModels[2].total;
  PlanRequest request = eight_b();
  request.batches.gradient_accumulation_steps = 8;
  request.gradient_checkpointing = true;
  request.sample_tokens = 64;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "gradients"), 4 * count);
  request.device.num_ranks = 4;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "gradients"), 4 * count);
  request.exact_ranks = true;
  for (const int zero_stage : {0, 1, 2}) {
    request.device.zero_stage = zero_stage;
    const MemoryPlan plan = make_plan(request);
    EXPECT_EQ(bytes_of(plan, "m-step", "gradients"), count)
        << "the sums; rows of 64 tokens are fullest in the forward pass";
    EXPECT_EQ(bytes_of(plan, "m-step", "messages"), 0);
    EXPECT_EQ(plan.phase("m-step").host_bytes, (NamedBytes{{"messages", 7 * count}}));
    EXPECT_EQ(plan.phase("update").host_bytes, (NamedBytes{{"messages", 7 * count}}));
  }
  request.device.on_gpu = false;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "messages"), 7 * count);
  EXPECT_TRUE(make_plan(request).phase("m-step").host_bytes.empty());
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
  const Computation computation{.checkpointing = true};
  const RowShape row{.num_tokens = 10};
  const int64_t three = row_memory(model, trained, computation, row).text;
  model.text.layers.pop_back();
  EXPECT_EQ(three - row_memory(model, trained, computation, row).text, 10 * 4 * 32);
}

TEST(Plan, AFrozenTowerKeepsNothing) {
  PlanRequest request = eight_b();
  request.tuner.freeze = {.vit = true, .aligner = true};
  const TrainedParameters trained = trained_parameters(request.model, request.tuner);
  EXPECT_EQ(row_memory(request.model, trained, {.value_bytes = 2, .on_gpu = true},
                       {.num_tokens = 100, .num_visual_tokens = 50})
                .vision,
            0);
}

TEST(Plan, LongerRowsTakeMore) {
  PlanRequest request = eight_b(141);
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
  PlanRequest request = eight_b();
  request.tuner.train_type = TrainType::kLora;
  request.gradient_checkpointing = true;
  request.sample_tokens = largest_row(request);
  ASSERT_GT(request.sample_tokens, 0);
  EXPECT_TRUE(make_plan(request).fits);
  request.sample_tokens += 64;
  EXPECT_FALSE(make_plan(request).fits);
}

TEST(Plan, TheCacheOfNativeRolloutsIsBoundedByItsKeyAndByFreeMemory) {
  PlanRequest request = eight_b();
  request.tuner.train_type = TrainType::kLora;
  const int64_t per_token = 36 * 2 * 8 * 128 * 2;
  EXPECT_EQ(bytes_of(make_plan(request), "rollout", "kv cache"),
            (16 * (4096 + 16) + 16) * per_token)
      << "and a block for copies";
  request.generation.native.kv_cache_gib = 2;
  const int64_t bounded = bytes_of(make_plan(request), "rollout", "kv cache");
  EXPECT_LE(bounded, int64_t{2} << 30);
  EXPECT_GT(bounded + 16 * per_token, int64_t{2} << 30);
}

TEST(Plan, VllmTakesItsShareUntilItSleeps) {
  PlanRequest request = eight_b();
  request.backend = "vllm";
  const auto share = static_cast<int64_t>(0.45 * 80 * 1024 * 1024 * 1024);
  MemoryPlan plan = make_plan(request);
  EXPECT_EQ(bytes_of(plan, "rollout", "vllm"), share);
  EXPECT_EQ(bytes_of(plan, "m-step", "vllm"), share);
  request.vllm.sleep_level = 1;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "vllm"), 0);
}

TEST(Plan, OffloadMovesTheTrainingStateToTheHostDuringVllmRolloutsOnly) {
  PlanRequest request = eight_b();
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
  PlanRequest request = eight_b();
  request.device.on_gpu = false;
  const MemoryPlan plan = make_plan(request);
  EXPECT_EQ(plan.peak_phase, "save");
  // masters and moments
  EXPECT_EQ(bytes_of(plan, "save", "checkpoint pages"), 12 * test::kPublicModels[2].total);
  EXPECT_EQ(plan.peak_bytes,
            plan.phase("m-step").total() + bytes_of(plan, "save", "checkpoint pages"));
  request.saves_state = false;
  EXPECT_LT(make_plan(request).peak_bytes, plan.peak_bytes);
  EXPECT_EQ(bytes_of(make_plan(eight_b()), "save", "checkpoint pages"), 0);
}

TEST(Plan, AnUnknownDeviceIsNeverTooSmall) {
  const MemoryPlan plan = make_plan(eight_b(0));
  EXPECT_TRUE(plan.fits);
  EXPECT_EQ(plan.usable_bytes, 0);
}

}  // namespace
}  // namespace rematch
