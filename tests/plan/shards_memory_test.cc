// Memory of a step with frozen weights of which each rank holds a part, by passes without values.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <numeric>
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
  std::function<void()> start_broadcast(const at::Tensor& values, int root) override {
    if (root != rank()) num_received += static_cast<int64_t>(values.nbytes());
    return [] {};
  }
  std::function<void()> exchange(const at::Tensor&, const std::vector<int64_t>&, const at::Tensor&,
                                 const std::vector<int64_t>&) override {
    return [] {};
  }
  int64_t num_received = 0;  ///< bytes

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
  int64_t received = 0;   ///< from other ranks, in the second row
  size_t num_loaded = 0;  ///< blocks that are held after loading
};

/// A training row with an image.
void run_row(const Model& model) {
  const ModelDescription& description = model.description();
  constexpr int64_t kPads = 16, kTokens = 64;
  RowInput row{.token_ids = std::vector<int64_t>(kTokens, 0), .segment_lens = {kTokens}};
  std::fill_n(row.token_ids.begin(), kPads, description.image_token_id);
  const int64_t side = 4 * description.vision.spatial_merge_size;
  row.grids = {{{1, side, side}}};
  const VisionInput images{
      .pixel_values_NC =
          at::empty({side * side, description.vision.patch_width()}, at::TensorOptions(at::kMeta)),
      .grid_thw = row.grids[0]};
  const at::Tensor hidden = model.forward_TH(row, model.encode_images(images)),
                   logits = model.head_KV(hidden);
  torch::autograd::backward({logits}, {at::empty_like(logits)});
}

/// Bytes at the peak of loading, and of two training rows.
Peaks measure(const Case& of, MetaGroup& group, const std::shared_ptr<MeasuredShards>& blocks) {
  MetaMemory memory;
  const auto model = Model::without_weights(of.model, {.dtype = at::kBFloat16,
                                                       .device = at::kMeta,
                                                       .gradient_checkpointing = of.checkpointing,
                                                       .blocks = blocks});
  Peaks peaks{.load = memory.peak(), .num_loaded = blocks ? blocks->bytes.size() : 0};
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  const auto adapter =
      Adapter::create(*model, select_targets(of.model, names, {}),
                      {.lora = {.rank = 4, .use_dora = of.use_dora}, .base_model = "x"});
  memory.restart_peak();
  for (int i = 0; i < 2; ++i) {
    const int64_t before = group.num_received;
    run_row(*model);
    peaks.received = group.num_received - before;
    for (const NamedParameter& parameter : adapter->parameters())
      parameter.tensor.mutable_grad().reset();
  }
  peaks.step = memory.peak();
  return peaks;
}

/// @return  bytes that shards save in a step
int64_t expect_a_part_and_two_blocks(const Case& of) {
  MetaGroup group;
  const auto blocks = std::make_shared<MeasuredShards>(group, at::kMeta);
  const Peaks whole = measure(of, group, nullptr), shards = measure(of, group, blocks);
  std::vector<int64_t> sizes = blocks->bytes;
  const auto first = sizes.begin();
  const int64_t layers = std::accumulate(first, first + shards.num_loaded, int64_t{0}),
                all = std::accumulate(first, sizes.end(), int64_t{0}),
                largest_layer = *std::max_element(first, first + shards.num_loaded),
                padding = blocks->padding / kRanks + 2 * 64 * kRanks;
  std::ranges::sort(sizes, std::greater());
  // While a rank reads its part of a block; embedding and head are whole until then.
  EXPECT_LE(shards.load, whole.load - layers + layers / kRanks + largest_layer / kRanks + padding);
  EXPECT_LE(shards.step, whole.step - all + all / kRanks + sizes[0] + largest_layer + padding);
  // Forward and backward, but for the head, which stays whole between them.
  EXPECT_LE(kRanks * shards.received, 2 * (kRanks - 1) * (all + blocks->padding));
  EXPECT_GE(kRanks * shards.received, 2 * (kRanks - 1) * (all - sizes[0]));
  return whole.step - shards.step;
}

}  // namespace

TEST(ShardsMemory, AStepTakesAPartTwoBlocksAndTheRest) {
  for (const char* name : {"tiny_tied", "tiny_untied", "windows_tied", "delta_tied"}) {
    for (const Checkpointing checkpointing :
         {Checkpointing::kOff, Checkpointing::kOn, Checkpointing::kSelective}) {
      for (const bool use_dora : {false, true}) {
        SCOPED_TRACE(name);
        expect_a_part_and_two_blocks(
            {describe_model(test::tiny_dir(name)), checkpointing, use_dora});
      }
    }
  }
  PlanRequest large = test::request_of(test::kPublicModels[3], 80);
  const int64_t saved = expect_a_part_and_two_blocks({large.model, Checkpointing::kOn});
  large.tuner.train_type = TrainType::kLora;
  large.device.num_ranks = kRanks;
  const int64_t whole = test::bytes_of(make_plan(large), "update", "weights");
  large.device.zero_stage = 3;
  const int64_t planned = whole - test::bytes_of(make_plan(large), "update", "weights");
  EXPECT_NEAR(static_cast<double>(saved), static_cast<double>(planned), 0.005 * planned);
}

}  // namespace rematch
