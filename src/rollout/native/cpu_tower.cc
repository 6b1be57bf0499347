#include "rollout/native/cpu_tower.h"

#include <fmt/core.h>

#include <string>
#include <utility>

namespace rematch {
namespace {

CpuLayerNorm take_norm(const CpuParameters& parameters, const std::string& name) {
  return {parameters.vector(name + ".weight"), parameters.vector(name + ".bias")};
}

CpuMerger take_merger(CpuParameters& parameters, const std::string& name, bool norm_after_shuffle) {
  return {take_norm(parameters, name + ".norm"), parameters.linear(name + ".linear_fc1"), parameters.linear(name + ".linear_fc2"),
          norm_after_shuffle};
}

}  // namespace

CpuTower take_cpu_tower(const Qwen3VL& model) {
  const at::NoGradGuard no_grad;
  const VisionConfig& config = model.config().vision;
  const std::string prefix = "model.visual.";
  CpuParameters parameters(model, {prefix});
  CpuTower tower;
  tower.patch_embed = parameters.linear(prefix + "patch_embed.proj");
  tower.pos_embed = parameters.tensor(prefix + "pos_embed.weight");
  for (int64_t i = 0; i < config.depth; ++i) {
    const std::string name = fmt::format("{}blocks.{}.", prefix, i);
    tower.blocks.push_back({take_norm(parameters, name + "norm1"), take_norm(parameters, name + "norm2"),
                            parameters.linear(name + "attn.qkv"), parameters.linear(name + "attn.proj"),
                            parameters.linear(name + "mlp.linear_fc1"), parameters.linear(name + "mlp.linear_fc2")});
  }
  tower.merger = take_merger(parameters, prefix + "merger", false);
  for (size_t i = 0; i < config.deepstack_visual_indexes.size(); ++i) {
    tower.deepstack.push_back(take_merger(parameters, fmt::format("{}deepstack_merger_list.{}", prefix, i), true));
  }
  tower.memory = std::move(parameters).memory();
  return tower;
}

}  // namespace rematch
