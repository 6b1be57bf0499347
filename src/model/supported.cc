#include "model/supported.h"

#include <fmt/core.h>

#include "base/error.h"

namespace rematch {

void require_supported(const ModelDescription& model, const std::string& where) {
  const auto require = [&](bool holds, const std::string& module, const char* what) {
    if (holds) return;
    throw data_error({.error = "a layer of the model is not implemented",
                      .where = where,
                      .what = fmt::format("{}: {}", module, what),
                      .fix = "use a checkpoint of a supported architecture"});
  };
  const auto is_rms = [](const NormDescription& norm) { return norm.kind != NormKind::kLayer; };
  const TextDescription& text = model.text;
  for (const LayerDescription& layer : text.layers) {
    require(is_rms(layer.mixer_norm) && is_rms(layer.mlp_norm), layer.mlp_norm.module,
            "only RMS norms in the decoder");
    if (const AttentionDescription* attention = layer.attention()) {
      const std::string& module = attention->q.module;
      require(attention->q_norm.has_value() == attention->k_norm.has_value(), module,
              "only norms on both queries and keys");
      require(!attention->q_norm || (is_rms(*attention->q_norm) && is_rms(*attention->k_norm)),
              module, "only RMS norms on heads");
      require(attention->window == 0, module, "only attention to all earlier tokens");
    } else {
      require(layer.delta()->norm.kind == NormKind::kRms, layer.delta()->norm.module,
              "only a gated RMS norm with a plain weight");
    }
    require(layer.mlp.gate.has_value() && layer.mlp.activation == Activation::kSilu,
            layer.mlp.up.module, "only gated SiLU");
  }
  require(is_rms(text.final_norm), text.final_norm.module, "only an RMS norm");
  require(!text.head.has_bias, text.head.module, "only a head without bias");
  const VisionDescription& vision = model.vision;
  for (const VisionBlockDescription& block : vision.blocks) {
    const bool is_gated = block.mlp.gate && block.mlp.activation == Activation::kSilu;
    const bool is_plain = !block.mlp.gate && block.mlp.activation == Activation::kGeluTanh;
    require(is_gated || is_plain, block.mlp.up.module, "only gated SiLU and ungated GELU (tanh)");
    require(block.window == 0 || block.window == vision.window(), block.qkv.module,
            "only windows of one size");
    require(block.window % vision.spatial_merge_size == 0, block.qkv.module,
            "only windows of whole visual tokens");
  }
  const auto require_merger = [&](const MergerDescription& merger) {
    require(merger.activation == Activation::kGeluErf, merger.fc1.module, "only GELU (erf)");
  };
  require_merger(vision.merger);
  for (const MergerDescription& merger : vision.deepstack_mergers) require_merger(merger);
}

}  // namespace rematch
