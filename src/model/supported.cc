#include "model/supported.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rematch {

void require_supported(const ModelDescription& model, const std::string& where) {
  const auto require = [&](bool holds, const std::string& module, const char* what) {
    if (holds) return;
    throw UserError(ErrorKind::kData, {.error = "a layer of the model is not implemented",
                                       .where = where,
                                       .what = fmt::format("{}: {}", module, what),
                                       .fix = "use a checkpoint of a supported architecture"});
  };
  const auto is_rms = [](const NormDescription& norm) { return norm.kind == NormKind::kRms; };
  const TextDescription& text = model.text;
  for (const LayerDescription& layer : text.layers) {
    require(is_rms(layer.attention_norm) && is_rms(layer.mlp_norm), layer.mlp_norm.module, "only RMS norms in the decoder");
    require(layer.q_norm.has_value() == layer.k_norm.has_value(), layer.q.module, "only norms on both queries and keys");
    require(!layer.q_norm || (is_rms(*layer.q_norm) && is_rms(*layer.k_norm)), layer.q.module, "only RMS norms on heads");
    require(layer.window == 0, layer.q.module, "only attention to all earlier tokens");
    require(layer.mlp.gate.has_value() && layer.mlp.activation == Activation::kSilu, layer.mlp.up.module, "only gated SiLU");
  }
  require(is_rms(text.final_norm), text.final_norm.module, "only an RMS norm");
  require(!text.head.has_bias, text.head.module, "only a head without bias");
  const VisionDescription& vision = model.vision;
  require(!vision.position_table.empty(), vision.patch_embed.module, "only towers with learned positions");
  for (const VisionBlockDescription& block : vision.blocks) {
    require(!is_rms(block.norm1) && !is_rms(block.norm2), block.norm1.module, "only LayerNorm in the vision tower");
    require(block.window == 0, block.qkv.module, "only attention to the whole frame");
    require(!block.mlp.gate && block.mlp.activation == Activation::kGeluTanh, block.mlp.up.module, "only ungated GELU (tanh)");
  }
  const auto require_merger = [&](const MergerDescription& merger) {
    require(!is_rms(merger.norm) && merger.activation == Activation::kGeluErf, merger.fc1.module, "only LayerNorm and GELU (erf)");
  };
  require_merger(vision.merger);
  for (const MergerDescription& merger : vision.deepstack_mergers) require_merger(merger);
}

}  // namespace rematch
