#include "engine/rollout/native/cpu/tower.h"

#include <utility>

namespace rematch {
namespace {

CpuVisionNorm load_vision_norm(const CpuParameters& parameters, const NormDescription& norm) {
  CpuVisionNorm taken{.weight = parameters.vector(norm.module + ".weight"),
                      .bias = {},
                      .eps = static_cast<float>(norm.eps)};
  if (norm.kind == NormKind::kLayer) taken.bias = parameters.vector(norm.module + ".bias");
  return taken;
}

CpuMerger load_merger(CpuParameters& parameters, const MergerDescription& merger) {
  return {load_vision_norm(parameters, merger.norm), parameters.linear(merger.fc1),
          parameters.linear(merger.fc2), merger.norm_after_shuffle};
}

}  // namespace

CpuTower load_cpu_tower(const Model& model) {
  const at::NoGradGuard no_grad;
  const VisionDescription& vision = model.description().vision;
  CpuParameters parameters(model, CpuParameters::Tower::kVision);
  CpuTower tower;
  tower.patch_embed = parameters.linear(vision.patch_embed);
  if (!vision.position_table.empty())
    tower.pos_embed = parameters.tensor(vision.position_table + ".weight");
  for (const VisionBlockDescription& block : vision.blocks) {
    tower.blocks.push_back({load_vision_norm(parameters, block.norm1),
                            load_vision_norm(parameters, block.norm2),
                            parameters.linear(block.qkv),
                            parameters.linear(block.proj),
                            parameters.linear(block.mlp.up),
                            parameters.linear(block.mlp.down),
                            {},
                            block.window > 0});
    if (block.mlp.gate) tower.blocks.back().gate = parameters.linear(*block.mlp.gate);
  }
  tower.merger = load_merger(parameters, vision.merger);
  for (const MergerDescription& merger : vision.deepstack_mergers)
    tower.deepstack.push_back(load_merger(parameters, merger));
  tower.memory = std::move(parameters).memory();
  return tower;
}

}  // namespace rematch
