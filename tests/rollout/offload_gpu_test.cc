// Offload on a real device: what the recording mover cannot show. Skipped without one.
#include <c10/core/CachingDeviceAllocator.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include "engine/ranks/device.h"
#include "engine/rollout/offload.h"
#include "learn/mstep/optim/adamw.h"
#include "learn/mstep/optim/float32_gradients.h"

namespace rematch {
namespace {

int64_t bytes_in_use() {
  constexpr auto kAll = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  return c10::getDeviceAllocator(at::kCUDA)->getDeviceStats(0).allocated_bytes[kAll].current;
}

struct Training {
  Training() {
    const at::TensorOptions device = at::TensorOptions().device(at::kCUDA, 0);
    wide = at::arange(512 * 512, device)
               .to(at::kFloat)
               .mul(1e-6)
               .reshape({512, 512})
               .clone()
               .requires_grad_();
    narrow = at::arange(512 * 256, device)
                 .to(at::kFloat)
                 .mul(1e-5)
                 .reshape({512, 256})
                 .to(at::kBFloat16)
                 .requires_grad_();
    optimizer = std::make_unique<AdamW>(std::vector<ParameterGroup>{{.name = "llm",
                                                                     .learning_rate = 0.01,
                                                                     .names = {"wide", "narrow"},
                                                                     .parameters = {wide, narrow}}},
                                        AdamWSettings{});
    gradients = std::make_unique<Float32Gradients>(optimizer->groups());
    offload = std::make_unique<Offload>(
        Offload::Options{.settings = {.enabled = true, .model = true, .optimizer = true}},
        [this] { return std::vector<at::Tensor>{wide, narrow}; }, make_tensor_mover());
    offload->set_optimizer([this] { return optimizer->tensors(); });
  }
  at::Tensor loss() const { return at::matmul(wide, narrow.to(at::kFloat)).tanh().sum(); }
  void step() {
    torch::autograd::backward({loss()}, {});
    gradients->publish();
    optimizer->step(1.0);
    for (const at::Tensor& tensor : {wide, narrow}) tensor.mutable_grad().reset();
  }

  at::Tensor wide, narrow;
  std::unique_ptr<AdamW> optimizer;
  std::unique_ptr<Float32Gradients> gradients;
  std::unique_ptr<Offload> offload;
};

}  // namespace

TEST(OffloadOnAGpu, FreesTheDeviceAndTrainsOnWithEveryBit) {
  if (num_gpus() == 0) GTEST_SKIP() << "no CUDA device, or a libtorch without CUDA";
  Training with, without;
  for (int i = 0; i < 3; ++i) {
    // A graph that is still alive keeps a gradient accumulator, which knows the device of its
    // parameter.
    const at::Tensor alive = with.loss();
    const int64_t before = bytes_in_use();
    {
      OffloadScope scope(with.offload.get());
      EXPECT_TRUE(with.wide.is_cpu() && with.narrow.is_cpu() && with.wide.is_pinned());
      EXPECT_TRUE(at::equal(with.wide, without.wide.cpu()));
      EXPECT_LE(bytes_in_use(), before - static_cast<int64_t>(with.narrow.nbytes())) << i;
      scope.restore();
    }
    EXPECT_TRUE(with.wide.is_cuda() && with.narrow.is_cuda());
    with.step();
    without.step();
    EXPECT_TRUE(at::equal(with.wide, without.wide) && at::equal(with.narrow, without.narrow)) << i;
  }
  const std::vector<at::Tensor> left = with.optimizer->tensors(),
                                right = without.optimizer->tensors();
  for (size_t i = 0; i < left.size(); ++i)
    EXPECT_TRUE(left[i].is_cuda() && at::equal(left[i], right[i])) << i;
}

TEST(OffloadOnAGpu, GivesTheMemoryOfTheWholeTrainingStateBack) {
  if (num_gpus() == 0) GTEST_SKIP() << "no CUDA device, or a libtorch without CUDA";
  Training training;
  training.step();
  int64_t held = static_cast<int64_t>(training.wide.nbytes() + training.narrow.nbytes());
  for (const at::Tensor& tensor : training.optimizer->tensors())
    held += static_cast<int64_t>(tensor.nbytes());
  const int64_t before = bytes_in_use();
  OffloadScope scope(training.offload.get());
  EXPECT_LE(bytes_in_use(), before - held);
  scope.restore();
  EXPECT_EQ(bytes_in_use(), before);
}

}  // namespace rematch
