#include "engine/rollout/offload.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "e2e/recorded.h"
#include "learn/pack/packer.h"
#include "support/pretend_device.h"

namespace rematch {
namespace {

struct Trained {
  std::vector<at::Tensor> weights;  ///< on the CPU
  int64_t num_generated_without_device = 0;
};

/// Two steps of stage 2 on the device, next to an engine that holds a copy of the weights.
Trained train(bool offloads) {
  const at::Device device = test::pretend_device();
  test::RecordedStage2 stage2;
  MStep& mstep = stage2.mstep(1e-4, device);
  Offload offload(
      {.settings = {.enabled = true, .model = true, .optimizer = true}},
      [&] { return stage2.parameters(); }, make_tensor_mover());
  offload.set_optimizer([&] { return mstep.optimizer().tensors(); });
  const auto all_on = [&](const at::Device& wanted) {
    std::vector<at::Tensor> tensors = stage2.parameters();
    const std::vector<at::Tensor> optimizer = mstep.optimizer().tensors();
    tensors.insert(tensors.end(), optimizer.begin(), optimizer.end());
    return std::all_of(tensors.begin(), tensors.end(),
                       [&](const at::Tensor& tensor) { return tensor.device() == wanted; });
  };
  Trained trained;
  stage2.hold_own_weights(offloads ? &offload : nullptr, [&](const std::string& event) {
    if (event == "generate") trained.num_generated_without_device += all_on(at::kCPU) ? 1 : 0;
  });
  Packer packer({});
  for (int64_t step = 0; step < 2; ++step) {
    MetricsBag metrics;
    const Window window{.rows = packer.pack(stage2.segments({{2 * step, 2 * step + 1}}), metrics)};
    EXPECT_TRUE(all_on(device)) << "step " << step;
    mstep.run(window, metrics);
  }
  for (const at::Tensor& parameter : stage2.parameters())
    trained.weights.push_back(parameter.detach().cpu());
  return trained;
}

}  // namespace

// spec: offload-02 offload-05
TEST(DeviceOffload, TrainingStateIsInHostMemoryDuringARolloutAndChangesNothing) {
  const Trained moved = train(true), stayed = train(false);
  EXPECT_EQ(moved.num_generated_without_device, 2);
  EXPECT_EQ(stayed.num_generated_without_device, 0);
  ASSERT_EQ(moved.weights.size(), stayed.weights.size());
  for (size_t i = 0; i < stayed.weights.size(); ++i)
    EXPECT_TRUE(at::equal(moved.weights[i], stayed.weights[i])) << i;
}

}  // namespace rematch
