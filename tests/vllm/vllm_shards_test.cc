// Engines of ranks that share the frozen weights: each gets all of them, layer by layer.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/ranks/frozen_shards.h"
#include "engine/rollout/vllm/vllm_engine.h"
#include "model/adapter.h"
#include "model/tiny_checkpoint.h"
#include "support/ranks.h"
#include "vllm/fake_plugin.h"

namespace rematch {
namespace {

constexpr int kRanks = 4;

std::shared_ptr<Model> load(const std::string& base, bool use_dora,
                            const std::shared_ptr<BlockWeights>& blocks) {
  auto model = Model::load(base, {.blocks = blocks});
  std::vector<std::string> names;
  for (const NamedParameter& parameter : model->parameters()) names.push_back(parameter.name);
  Adapter::create(*model, select_targets(model->description(), names, {}),
                  {.lora = {.rank = 4, .use_dora = use_dora}, .seed = 7, .base_model = "x"});
  return model;
}

/// Changes the adapter as an update would.
void train(const Model& model) {
  const at::NoGradGuard no_grad;
  for (const NamedParameter& parameter : model.adapter()->parameters())
    at::Tensor(parameter.tensor).add_(0.01);
}

using Weights = std::map<std::string, at::Tensor>;

Weights merged(const Model& model) {
  Weights weights;
  for (const NamedParameter& parameter : model.parameters())
    weights[parameter.name] = model.adapter()->merge(parameter);
  return weights;
}

VllmOptions options_of(const std::string& base) {
  VllmOptions options{{.tensor_parallel_size = 1, .gpu_memory_utilization = 0.3}};
  options.model_dir = base;
  return options;
}

/// An engine of this rank over a plug-in that keeps what it is given.
struct ShardsRig {
  ShardsRig(const std::string& base, bool use_dora, Group& group)
      : model(load(base, use_dora, std::make_shared<FrozenShards>(group, at::kCPU))),
        engine(plugin, {.model = model, .vllm = options_of(base)}, {{.max_new_tokens = 8}, 0, {1}},
               PatchOptions{}) {}

  void expect(const Weights& wanted, std::mutex& mutex) const {
    const std::lock_guard lock(mutex);  // EXPECT_ of one thread at a time
    EXPECT_EQ(plugin.weights.size(), wanted.size());
    for (const auto& [name, values] : wanted)
      EXPECT_TRUE(at::equal(plugin.weights.at(name), values)) << name;
  }

  std::shared_ptr<Model> model;
  test::FakePlugin plugin;
  VllmEngine engine;
};

}  // namespace

TEST(VllmShards, EveryEngineGetsTheMergedWeightsInEveryFamily) {
  for (const std::string& base :
       {test::tiny_tied(), test::tiny_untied(), test::windows_tied(), test::delta_tied()}) {
    for (const bool use_dora : {false, true}) {
      SCOPED_TRACE(base + (use_dora ? " dora" : " lora"));
      const auto whole = load(base, use_dora, nullptr);
      const Weights first = merged(*whole);
      train(*whole);
      const Weights second = merged(*whole);
      EXPECT_FALSE(std::ranges::equal(first, second, [](const auto& a, const auto& b) {
        return at::equal(a.second, b.second);
      }));
      std::mutex mutex;
      test::run_ranks(kRanks, [&](Group& group) {
        ShardsRig rig(base, use_dora, group);
        rig.expect(first, mutex);
        train(*rig.model);
        rig.engine.sync_weights(1);
        rig.expect(second, mutex);
        // one rank's engine has lost its weights: the others send none, and help
        if (group.rank() == 2) rig.plugin.version = -1;
        rig.engine.sync_weights(1);
        rig.expect(second, mutex);
        EXPECT_EQ(rig.plugin.num_syncs, group.rank() == 2 ? 3 : 2);
      });
    }
  }
}

TEST(VllmShards, ARankWhoseEngineFailsStillGivesItsParts) {
  std::mutex mutex;
  test::run_ranks(kRanks, [&](Group& group) {
    ShardsRig rig(test::tiny_tied(), false, group);
    train(*rig.model);
    if (group.rank() == 1) {
      rig.plugin.load_error = "out of memory";
      EXPECT_THROW(rig.engine.sync_weights(1), UserError);
      return;
    }
    rig.engine.sync_weights(1);
    const auto whole = load(test::tiny_tied(), false, nullptr);
    train(*whole);
    rig.expect(merged(*whole), mutex);
  });
}

}  // namespace rematch
