// Memory of a step with frozen weights of which each rank holds a part, by passes without values.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <map>
#include <vector>

#include "engine/ranks/frozen_shards.h"
#include "model/adapter.h"
#include "model/model.h"
#include "plan/models.h"
#include "tools/plan/meta_memory.h"

namespace rematch {
namespace {

constexpr int kRanks = 4;

/// One of four ranks with messages on the meta device; the others send nothing.
class MetaGroup : public Group {
 public:
  int rank() const override { return 1; }
  int size() const override { return kRanks; }
  at::Device message_device() const override { return at::kMeta; }
  std::function<void()> start_broadcast(const at::Tensor&, int) override {
    return [] {};
  }
  std::function<void()> exchange(const at::Tensor&, const std::vector<int64_t>&, const at::Tensor&,
                                 const std::vector<int64_t>&) override {
    return [] {};
  }

 protected:
  void sum(std::span<double>) override {}
  void sum(std::span<int64_t>) override {}
  std::vector<std::string> collect(std::string bytes) override { return {kRanks, bytes}; }
  std::string copy(std::string bytes) override { return bytes; }
  void copy(at::Tensor&, int) override {}
};

/// Notes the bytes of each block.
class MeasuredShards : public FrozenShards {
 public:
  using FrozenShards::FrozenShards;
  size_t hold(const std::vector<at::Tensor>& tensors, const Read& read) override {
    int64_t size = 0;
    for (const at::Tensor& tensor : tensors) size += static_cast<int64_t>(tensor.nbytes());
    bytes.push_back(size);
    padding += 64 * (std::ssize(tensors) + kRanks);
    return FrozenShards::hold(tensors, read);
  }
  std::vector<int64_t> bytes;
  int64_t padding = 0;  ///< of all blocks, at most
};

struct Case {
  ModelDescription model;
  Checkpointing checkpointing = Checkpointing::kOff;
  bool use_dora = false;
};

struct Peaks {
  int64_t load = 0, step = 0;
};

/// Bytes at the peak of loading, and of two training rows.
Peaks measure(const Case& of, const std::shared_ptr<BlockWeights>& blocks) {
  MetaMemory memory;
  const auto model = Model::without_weights(of.model, {.dtype = at::kBFloat16,
                                                       .device = at::kMeta,
                                                       .gradient_checkpointing = of.checkpointing,
                                                       .blocks = blocks});
  Peaks peaks{.load = memory.peak()};
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  const auto adapter =
      Adapter::create(*model, select_targets(of.model, names, {}),
                      {.lora = {.rank = 4, .use_dora = of.use_dora}, .base_model = "x"});
  memory.restart_peak();
  RowInput row{.token_ids = std::vector<int64_t>(64, 0), .segment_lens = {64}};
  for (int i = 0; i < 2; ++i) {
    const at::Tensor hidden = model->forward_TH(row, {});
    torch::autograd::backward({hidden}, {at::empty_like(hidden)});
    for (const NamedParameter& parameter : adapter->parameters())
      parameter.tensor.mutable_grad().reset();
  }
  peaks.step = memory.peak();
  return peaks;
}

void expect_a_part_and_two_blocks(const Case& of) {
  MetaGroup group;
  const auto blocks = std::make_shared<MeasuredShards>(group, at::kMeta);
  const Peaks whole = measure(of, nullptr), shards = measure(of, blocks);
  std::vector<int64_t> sizes = blocks->bytes;
  int64_t all = 0;
  for (const int64_t size : sizes) all += size;
  std::ranges::sort(sizes, std::greater());
  const int64_t part = (all + blocks->padding) / kRanks, padding = 2 * 64 * kRanks;
  EXPECT_LE(shards.load, whole.load - all + part + sizes[0] / kRanks + padding)
      << "while its part of a block is read";
  EXPECT_LE(shards.step, whole.step - all + part + 2 * sizes[0] + padding);
}

}  // namespace

TEST(ShardsMemory, AStepTakesAPartTwoBlocksAndTheRest) {
  for (const char* name : {"tiny_tied", "windows_tied", "delta_tied"}) {
    for (const Checkpointing checkpointing :
         {Checkpointing::kOff, Checkpointing::kOn, Checkpointing::kSelective}) {
      for (const bool use_dora : {false, true}) {
        SCOPED_TRACE(name);
        expect_a_part_and_two_blocks(
            {describe_model(test::tiny_dir(name)), checkpointing, use_dora});
      }
    }
  }
  const PlanRequest large = test::request_of(test::kPublicModels[3], 80);
  expect_a_part_and_two_blocks({large.model, Checkpointing::kOn});
}

}  // namespace rematch
