// Many windows with the real vLLM: memory stays level, and no thread waits for Python's lock
// forever.
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <atomic>
#include <cstdio>
#include <fstream>
#include <thread>

#include "model/row.h"
#include "support/paths.h"
#include "vllm/live_vllm.h"

namespace rematch {
namespace {

int64_t resident_pages() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident;
}

// Forward and backward of one short row, as the M-step does it: autograd with libtorch_python
// loaded.
double train_step(const test::Questions& asked) {
  auto segment = std::make_shared<Segment>();
  segment->token_ids = asked.prompts.front().token_ids;
  segment->images = asked.prompts.front().images;
  const at::Tensor hidden =
      forward_row(*asked.model, make_row({.segments = {segment}}, asked.parts.pixels));
  const at::Tensor loss = hidden.square().mean();
  torch::autograd::backward({loss}, {});
  for (const NamedParameter& parameter : asked.model->parameters()) {
    if (parameter.tensor.grad().defined()) at::Tensor(parameter.tensor).mutable_grad().reset();
  }
  return loss.item<double>();
}

}  // namespace

TEST(VllmStress, TwoHundredSyncsAndGenerationsNeitherGrowNorLock) {
  REMATCH_NEEDS_VLLM();
  const test::Questions asked = test::questions(test::source_path("tests/shapes/model"), 4);
  for (const NamedParameter& parameter : asked.model->parameters())
    at::Tensor(parameter.tensor).requires_grad_(true);
  const auto engine = make_engine("vllm", asked.parts, asked.options(12));
  const auto expected = asked.answers(*engine);

  std::atomic<bool> stop = false;
  std::atomic<int64_t> num_decoded = 0, num_backward = 0;
  // Work during a rollout phase: workers that load images, and a backward pass of other
  // threads.
  std::thread worker([&] {
    while (!stop) {
      num_decoded += asked.parts.pixels(asked.prompts[1].images.front())->num_rows();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  std::thread backward([&] {
    while (!stop) {
      const at::Tensor x = at::randn({16, 16}).requires_grad_(true);
      torch::autograd::backward({x.matmul(x).square().sum()}, {});
      ++num_backward;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  int64_t early = 0;
  for (int window = 1; window <= 200; ++window) {
    engine->sync_weights(window);
    ASSERT_EQ(asked.answers(*engine), expected) << "window " << window;
    if (window % 10 == 0) train_step(asked);
    if (window == 40) early = resident_pages();
  }
  const int64_t late = resident_pages();
  stop = true;
  worker.join();
  backward.join();
  std::printf(
      "resident: %ld MiB after 40 windows, %ld MiB after 200; during them %ld backward passes\n",
      early / 256, late / 256, static_cast<int64_t>(num_backward));
  EXPECT_LT(static_cast<double>(late), 1.02 * static_cast<double>(early));
  EXPECT_GT(num_decoded, 0);
  EXPECT_GT(num_backward, 0);
}

}  // namespace rematch
