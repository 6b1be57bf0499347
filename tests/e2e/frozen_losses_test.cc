#include <fmt/core.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/json.h"
#include "e2e/recorded.h"
#include "learn/pack/packer.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch {
namespace {

std::vector<double> ten_losses() {
  test::RecordedStage2 stage2;
  MStep& mstep = stage2.mstep(2e-3);
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    const int64_t first = (step % 2) * 4;
    MetricsBag metrics;
    mstep.run({.rows = Packer({}).pack(
                   stage2.segments({{first, first + 1}, {first + 2, first + 3}}), metrics)},
              metrics);
    losses.push_back(metrics.values("loss").at(0));
  }
  return losses;
}

// Gradient of a window as one flat vector, through a step of plain accumulation: read from what
// AdamW's first moment holds after one step.
at::Tensor first_moments(const std::vector<std::vector<int64_t>>& micro_batches,
                         const TargetSettings& target = {}, const Packer::Options& packing = {}) {
  test::RecordedStage2 stage2;
  stage2.teach(target);
  MStep& mstep = stage2.mstep(1e-3);
  MetricsBag metrics;
  mstep.run({.rows = Packer(packing).pack(stage2.segments(micro_batches), metrics)}, metrics);
  std::vector<at::Tensor> flat;
  for (const auto& [name, tensor] : mstep.optimizer().state()) {
    if (name.size() > 8 && name.compare(name.size() - 8, 8, ".exp_avg") == 0)
      flat.push_back(tensor.flatten());
  }
  return at::cat(flat);
}

}  // namespace

TEST(RolloutMatching, TenLossesAreFrozen) {
  const Json frozen = read_json_file(test::source_path("tests/golden/e2e/frozen_losses.json"));
  const std::vector<double> losses = ten_losses();
  std::string printed;
  for (const double loss : losses)
    printed += fmt::format("{}{:.6f}", printed.empty() ? "[" : ", ", loss);
  ASSERT_EQ(frozen.size(), losses.size());
  for (size_t i = 0; i < losses.size(); ++i)
    EXPECT_NEAR(losses[i], frozen[i].get<double>(), 1e-3)
        << "step " << i << "; all: " << printed << "]";
  EXPECT_LT(losses.back(), losses.front());
}

TEST(RolloutMatching, TheLossesOfTwoRunsAreTheSameBits) { EXPECT_EQ(ten_losses(), ten_losses()); }

TEST(RolloutMatching, TheGradientOfAWindowDoesNotDependOnItsSplitIntoMicroBatches) {
  const at::Tensor together = first_moments({{0, 1, 2, 3, 4, 5}});
  for (const std::vector<std::vector<int64_t>>& split :
       {std::vector<std::vector<int64_t>>{{0, 1}, {2, 3}, {4, 5}},
        {{0}, {1}, {2}, {3}, {4}, {5}},
        {{0, 1, 2, 3, 4}, {5}}}) {
    const at::Tensor apart = first_moments(split);
    EXPECT_LE((apart - together).norm().item<double>(), 1e-5 * together.norm().item<double>());
  }
}

TEST(RolloutMatching, TheGradientOfRewrittenTargetsIsTheSamePackedAndUnpacked) {
  const TargetSettings rewrite{.policy = "rewrite", .rewrite_order = RewriteOrder::kRollout};
  const std::vector<std::vector<int64_t>> micro_batches = {{0, 1}, {2, 3}, {4, 5}};
  const at::Tensor unpacked = first_moments(micro_batches, rewrite);
  for (const PackingSelector selector : {PackingSelector::kFifo, PackingSelector::kOptimal}) {
    const at::Tensor packed = first_moments(
        micro_batches, rewrite,
        {.pack = {.selector = selector, .scope = PackScope::kWindow}, .packing_length = 1024});
    EXPECT_LE((packed - unpacked).norm().item<double>(), 1e-5 * unpacked.norm().item<double>());
  }
  EXPECT_GT((first_moments(micro_batches) - unpacked).norm().item<double>(),
            1e-2 * unpacked.norm().item<double>())
      << "append teaches else";
}

// spec: pack-11
TEST(RolloutMatching, ADriftOfThePromptIdsIsRefused) {
  test::RecordedStage2 stage2;
  EXPECT_NO_THROW(stage2.segments({{0, 1}}));
  stage2.drift_prompt_ids(7);
  const UserError error = test::catch_user_error([&] { stage2.segments({{0, 1}}); });
  EXPECT_EQ(error.kind(), ErrorKind::kData);
  EXPECT_NE(std::string(error.what()).find("7"), std::string::npos) << error.what();
}

}  // namespace rematch
