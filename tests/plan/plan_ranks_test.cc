#include <gtest/gtest.h>

#include "plan/models.h"
#include "tools/plan/plan.h"

// Memory of a training on several ranks.
namespace rematch {
namespace {

using test::bytes_of;

TEST(Plan, ZeroStagesSplitTheOptimizerThenTheGradients) {
  PlanRequest request = test::eight_b();
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

// With an adapter each rank holds a part of both towers' layers, of the embedding and of the head,
// a layer and a table of them whole, and the rest.
TEST(Plan, ZeroStageThreeSplitsTheFrozenLayers) {
  PlanRequest request = test::eight_b();
  request.tuner.train_type = TrainType::kLora;
  request.device.num_ranks = 4;
  request.device.zero_stage = 2;
  const int64_t whole = bytes_of(make_plan(request), "update", "weights");
  request.device.zero_stage = 3;
  const int64_t hidden = 4096, inner = 12288, heads = 32 * 128, kv = 8 * 128,
                layer =
                    2 * (hidden * (2 * heads + 2 * kv) + 3 * hidden * inner + 2 * hidden + 2 * 128),
                table = 2 * 151936 * hidden, width = 1152, wide = 4304,
                block = 2 * (4 * width * width + 2 * width * wide + 9 * width + wide);
  EXPECT_EQ(whole - bytes_of(make_plan(request), "update", "weights"),
            (36 * layer + 2 * table + 27 * block) * 3 / 4 - layer - table);
  request.tuner.targets.trainable_token_indices = {"7"};
  EXPECT_EQ(whole - bytes_of(make_plan(request), "update", "weights"),
            (36 * layer + 27 * block) * 3 / 4 - 2 * layer - 2 * 4 * hidden);
  request.tuner.targets = {.modules_to_save = {"lm_head"}};
  EXPECT_EQ(whole - bytes_of(make_plan(request), "update", "weights"),
            (36 * layer + table + 27 * block) * 3 / 4 - layer - table);
  request.tuner.targets = {};
  request.device.num_ranks = 1;
  EXPECT_EQ(bytes_of(make_plan(request), "update", "weights"), whole);
}

TEST(Plan, LoraOf32BFitsFourGpusOf48GbWithZeroStageThreeAlone) {
  const auto fits = [](size_t model, double gib, int zero_stage, const char* backend = "") {
    PlanRequest request = test::request_of(test::kPublicModels[model], gib);
    request.tuner.train_type = TrainType::kLora;
    request.gradient_checkpointing = Checkpointing::kOn;
    request.backend = backend;
    request.vllm.tensor_parallel_size = 4;
    request.device.num_ranks = 4;
    request.device.zero_stage = zero_stage;
    return make_plan(request).fits;
  };
  constexpr size_t k8B = 2, k32B = 3;
  EXPECT_TRUE(fits(k32B, 80, 3));
  EXPECT_TRUE(fits(k32B, 48, 3));
  EXPECT_FALSE(fits(k32B, 48, 2));
  EXPECT_TRUE(fits(k8B, 24, 3));
  EXPECT_TRUE(fits(k32B, 80, 3, "vllm"));
  EXPECT_FALSE(fits(k32B, 80, 2, "vllm"));
}

// Each rank adds up its own rows, or with exact_ranks (and zero_stage 2 over NCCL) those of all
// ranks for the parameters it owns. Messages over Gloo lie in host memory.
TEST(Plan, SeveralRanksHoldSumsAndGradientsInFlight) {
  const int64_t count = test::kPublicModels[2].total;
  PlanRequest request = test::eight_b();
  request.batches.gradient_accumulation_steps = 8;
  request.gradient_checkpointing = Checkpointing::kOn;
  request.sample_tokens = 64;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "gradients"), 4 * count);
  request.device.num_ranks = 4;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "gradients"), 4 * count);
  const int64_t in_flight = int64_t{3} * 2 * (25 << 20);
  request.exact_ranks = true;
  for (const int zero_stage : {0, 1, 2}) {
    request.device.zero_stage = zero_stage;
    const MemoryPlan plan = make_plan(request);
    const int64_t head = int64_t{151936} * 4096, matrix = int64_t{4096} * 12288;
    EXPECT_EQ(bytes_of(plan, "m-step", "gradients"), count + (2 + 4) * head + 4 * 4 * matrix)
        << "the sums, the head's and those that wait for other owners";
    EXPECT_EQ(bytes_of(plan, "m-step", "messages"), in_flight);
    EXPECT_TRUE(plan.phase("m-step").host_bytes.empty());
  }
  request.device.nccl = false;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "messages"), 0);
  EXPECT_EQ(make_plan(request).phase("m-step").host_bytes, (NamedBytes{{"messages", in_flight}}));
  EXPECT_EQ(make_plan(request).phase("update").host_bytes, (NamedBytes{{"messages", in_flight}}));
  request.device.on_gpu = false;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "messages"), in_flight);
  EXPECT_TRUE(make_plan(request).phase("m-step").host_bytes.empty());
}

TEST(Plan, EightBillionParametersOnEightRanksTakeLessThan45GibOfState) {
  PlanRequest request = test::eight_b();
  request.device.num_ranks = 8;
  request.device.zero_stage = 2;
  request.gradient_checkpointing = Checkpointing::kOn;
  request.sample_tokens = 4096;
  const MemoryPlan plan = make_plan(request);
  const int64_t messages = bytes_of(plan, "m-step", "messages"),
                sums = bytes_of(plan, "m-step", "gradients");
  EXPECT_LE(make_plan(request).least_bytes + messages, int64_t{45} << 30);
  EXPECT_LE(sums, int64_t{12} << 30) << "owned sums, and the largest gradient";
  EXPECT_TRUE(plan.fits);
}

TEST(Plan, SeveralRanksOverNcclHoldItsBuffers) {
  PlanRequest request = test::eight_b();
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "nccl"), 0);
  request.device.num_ranks = 4;
  const int64_t channel = (8 * 512 * 8 * 16) + (120 * 640 * 8 * 8) + (4 << 20);
  for (const char* phase : {"rollout", "m-step", "update", "save"})
    EXPECT_EQ(bytes_of(make_plan(request), phase, "nccl"), 2 * 32 * channel) << phase;
  request.device.nccl = false;
  EXPECT_EQ(bytes_of(make_plan(request), "m-step", "nccl"), 0);
}

}  // namespace
}  // namespace rematch
