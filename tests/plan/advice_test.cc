#include "tools/plan/advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "plan/models.h"
#include "tools/plan/report.h"

namespace rematch {
namespace {

using ::testing::HasSubstr;

TEST(PlanAdvice, NamesTheFastestCheckpointingThatFits) {
  const auto advice = [](Checkpointing now, double gib) {
    PlanRequest request = test::request_of(test::kPublicModels[0], gib);
    request.tuner.train_type = TrainType::kLora;
    request.backend = "";
    request.gradient_checkpointing = now;
    const MemoryPlan plan = make_plan(request);
    EXPECT_TRUE(plan.fits) << gib;
    return join(make_advice(request, plan), "\n");
  };
  using enum Checkpointing;
  EXPECT_THAT(advice(kOn, 80), HasSubstr("gradient_checkpointing: false"));
  EXPECT_THAT(advice(kSelective, 80), HasSubstr("gradient_checkpointing: false"));
  EXPECT_EQ(advice(kOff, 80), "");
  EXPECT_THAT(advice(kOn, 14), HasSubstr("gradient_checkpointing: selective"));
  EXPECT_EQ(advice(kSelective, 14), "");
  EXPECT_EQ(advice(kOn, 10), "");
  EXPECT_EQ(advice(kOn, 0), "") << "a device that is unknown";
}

TEST(PlanAdvice, NamesEveryChangeThatIsEnoughAlone) {
  PlanRequest request = test::request_of(test::kPublicModels[0], 80);
  request.sample_tokens = 24000;
  const MemoryPlan plan = make_plan(request);
  ASSERT_FALSE(plan.fits);
  const std::string lines = join(make_advice(request, plan), "\n");
  EXPECT_THAT(lines, HasSubstr("set global_max_length: "));
  EXPECT_THAT(lines, HasSubstr("set training.gradient_checkpointing: true: "));
  EXPECT_THAT(lines, HasSubstr("which fits"));
}

TEST(PlanAdvice, CombinesChangesWhenNoneIsEnough) {
  PlanRequest request = test::request_of(test::kPublicModels[2], 24);
  const std::string lines = join(make_advice(request, make_plan(request)), "\n");
  EXPECT_THAT(lines, HasSubstr("together: set training.gradient_checkpointing: true; "));
  EXPECT_THAT(lines, HasSubstr("weights, optimizer and gradients alone are 147.0 GiB"));
}

TEST(PlanAdvice, CombinesNoMoreThanIsNeeded) {
  const PlanRequest request = test::request_of(test::kPublicModels[0], 24);
  const std::string lines = join(make_advice(request, make_plan(request)), "\n");
  EXPECT_THAT(lines, HasSubstr("together: set training.gradient_checkpointing: true; train an "
                               "adapter (tuner.train_type: lora): 13."));
}

TEST(PlanReport, SaysWhatItsLimitsAreAbout) {
  PlanRequest request = test::request_of(test::kPublicModels[0], 80);
  request.sample_tokens = 1024;
  request.batches.per_device_train_batch_size = 4;
  const std::string text = plan_text(request, make_plan(request), "model");
  EXPECT_THAT(text, HasSubstr("With 1024 tokens a sample the batch"));
  request.trains_on_rollouts = false;
  const std::string stage_1 = plan_text(request, make_plan(request), "model");
  EXPECT_THAT(stage_1, HasSubstr("      load  evaluate    m-step"));
}

TEST(PlanAdvice, SaysSoWhenNothingHelps) {
  PlanRequest request = test::request_of(test::kPublicModels[3], 24);
  EXPECT_THAT(join(make_advice(request, make_plan(request)), "\n"), HasSubstr("still too much"));
}

TEST(PlanReport, FitsEightyColumns) {
  for (const test::PublicModel& model : test::kPublicModels) {
    PlanRequest request = test::request_of(model, 24);
    request.device.num_ranks = 64;
    request.backend = "vllm";
    request.offload = {.enabled = true, .model = true, .optimizer = true};
    for (const std::string& line : split(plan_text(request, make_plan(request), "model"), '\n'))
      EXPECT_LE(line.size(), 80u) << line;
  }
}

TEST(PlanReport, JsonHasTheFieldsOfItsContract) {
  const PlanRequest request = test::request_of(test::kPublicModels[2], 80);
  const MemoryPlan plan = make_plan(request);
  const Json json = plan_json(request, plan);
  EXPECT_EQ(json["parameters"], (Json{{"total", 8767123696},
                                      {"text", 8190735360},
                                      {"vision", 576388336},
                                      {"trainable", 8767123696}}));
  int64_t peak = 0;
  for (const Json& phase : json["phases"]) {
    int64_t sum = 0;
    for (const auto& bytes : phase["bytes"].items()) sum += bytes.value().get<int64_t>();
    peak = std::max(peak, sum);
  }
  EXPECT_EQ(json["peak_bytes"], peak);
  EXPECT_EQ(json["fits"], false);
  EXPECT_EQ(json["advice"].size(), make_advice(request, plan).size());
}

}  // namespace
}  // namespace rematch
