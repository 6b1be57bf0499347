// Number of times the host waits for the device, step by step; docs/contract/DEVICE.md states the
// numbers.
#include <gtest/gtest.h>

#include <functional>

#include "e2e/recorded.h"
#include "engine/rollout/engine_factory.h"
#include "learn/pack/packer.h"
#include "model/text/tokenizer.h"
#include "rollout/generate_golden.h"
#include "support/paths.h"
#include "support/pretend_device.h"

namespace rematch {
namespace {

test::Traffic traffic_of(const std::function<void()>& work) {
  const test::Traffic before = test::traffic();
  work();
  return test::traffic() - before;
}

/// A window of `num_rows` rows.
Window window_of(test::RecordedStage2& stage2, int64_t num_rows) {
  Packer packer({});
  MetricsBag metrics;
  std::vector<std::vector<int64_t>> samples;
  for (int64_t row = 0; row < num_rows; ++row) samples.push_back({row});
  return {.rows = packer.pack(stage2.segments(samples), metrics)};
}

/// @param in_row  done in the forward pass of every row, with a parameter at hand
test::Traffic step_traffic(int64_t num_rows,
                           const std::function<void(const at::Tensor&)>& in_row = {}) {
  test::RecordedStage2 stage2;
  MStep& mstep = stage2.mstep(1e-4, test::pretend_device());
  if (in_row)
    stage2.watch_rows([&](const PackedRow&) { in_row(stage2.parameters().front().detach()); });
  const Window window = window_of(stage2, num_rows);
  EXPECT_EQ(window.rows.size(), static_cast<size_t>(num_rows));
  MetricsBag metrics;
  return traffic_of([&] { mstep.run(window, metrics); });
}

int64_t waits_of_step(int64_t num_rows, const std::function<void(const at::Tensor&)>& in_row = {}) {
  return step_traffic(num_rows, in_row).waits;
}

constexpr int64_t kNumPrompts = 8;  // of the golden file

/// Traffic of answering the golden prompts with `num_tokens` tokens each.
test::Traffic answer_traffic(const std::string& backend, int num_tokens) {
  static const auto model = Model::load(test::source_path("tests/golden/rollout_model"),
                                        {.device = test::pretend_device()});
  const auto golden =
      test::load_generate_golden(test::source_path("tests/golden/rollout_generate.json"));
  const auto engine = make_engine(backend,
                                  {.model = model,
                                   .tokenizer = test::rollout_model().tokenizer,
                                   .pixels = test::synthetic_pixels,
                                   .vllm = {}},
                                  {{.max_new_tokens = num_tokens, .batch_size = 8}});
  std::vector<Rollout> rollouts;
  engine->sync_weights(0);
  const test::Traffic traffic =
      traffic_of([&] { rollouts = engine->generate(golden.prompts, {}); });
  for (size_t i = 0; i < rollouts.size(); ++i) {
    const std::vector<int> wanted(golden.plain[i].begin(), golden.plain[i].begin() + num_tokens);
    EXPECT_EQ(rollouts[i].response_token_ids, wanted) << "the ids of the CPU";
  }
  return traffic;
}

}  // namespace

TEST(DeviceBudget, AnOptimizerStepWaitsTwiceHoweverManyRowsItHas) {
  EXPECT_EQ(waits_of_step(1), 2);  // losses; norm
  EXPECT_EQ(waits_of_step(3), 2);
}

// Forward, loss and backward, with an image of 4 x 6 patches as float32.
TEST(DeviceBudget, ARowOfThreeLayersAndThreeVisionBlocks) {
  const test::Traffic row = step_traffic(3) - step_traffic(2);
  EXPECT_LE(row.launches, 830);
  EXPECT_EQ(row.waits, 0);
  EXPECT_LE(row.bytes_up, 24 * 1536 * 4 + 16384) << "pixels; ids, positions and targets";
  EXPECT_LE(row.bytes_down, 128);
}

TEST(DeviceBudget, APlantedItemIsCountedAndAPlantedMissingTransferIsRefused) {
  EXPECT_EQ(waits_of_step(3, [](const at::Tensor& parameter) { parameter.sum().item<double>(); }),
            5);
  EXPECT_THROW(
      waits_of_step(1,
                    [](const at::Tensor& parameter) { parameter.index_select(0, at::arange(1)); }),
      c10::Error);
}

TEST(DeviceBudget, ADecodingStepWaitsOnce) {
  for (const char* backend : {"hf", "native"}) {
    const test::Traffic steps = answer_traffic(backend, 12) - answer_traffic(backend, 4);
    EXPECT_EQ(steps.waits, 8) << backend;
    const bool is_native = backend == std::string("native");
    EXPECT_LE(steps.launches, 8 * (is_native ? 170 : 145)) << backend << ", three layers";
    EXPECT_LE(steps.bytes_up, 8 * kNumPrompts * (is_native ? 128 : 640)) << backend;
    EXPECT_LE(steps.bytes_down, 8 * kNumPrompts * 16) << backend;
  }
}

}  // namespace rematch
