#include "model/families/qwen3_parts.h"

#include <fmt/core.h>

#include "model/families/config_values.h"
#include "model/families/qwen_parts.h"

namespace rematch {
namespace {

VisionBlockDescription vision_block(const VisionDescription& vision, int64_t block_idx) {
  VisionBlockDescription block = qwen_vision_block(vision, block_idx, NormKind::kLayer);
  const std::string mlp = fmt::format("{}blocks.{}.mlp.", kQwenVision, block_idx);
  const int64_t width = vision.hidden_size, inner = vision.intermediate_size;
  block.mlp = {.activation = Activation::kGeluTanh,
               .gate = std::nullopt,
               .up = {mlp + "linear_fc1", inner, width, true},
               .down = {mlp + "linear_fc2", width, inner, true}};
  return block;
}

}  // namespace

std::vector<int64_t> read_interleaved_axes(JsonFields& rope, std::vector<int64_t> default_section,
                                           int64_t num_pairs) {
  const std::vector<int64_t> section =
      config_counts(rope, "mrope_section", std::move(default_section));
  if (section.size() != 3)
    rope.fail("mrope_section",
              fmt::format("expected three numbers (t, h, w), found {}", section.size()));
  std::vector<int64_t> axes;
  for (int64_t j = 0; j < num_pairs; ++j)
    axes.push_back(j % 3 != 0 && j < 3 * section[j % 3] ? j % 3 : 0);
  return axes;
}

MergerDescription qwen3_merger(const VisionDescription& vision, const std::string& module,
                               int64_t out_width, bool norm_after_shuffle) {
  const int64_t merged = vision.hidden_size * vision.merge_area();
  return {.norm = qwen_vision_norm(
              module + ".norm", norm_after_shuffle ? merged : vision.hidden_size, NormKind::kLayer),
          .norm_after_shuffle = norm_after_shuffle,
          .fc1 = {module + ".linear_fc1", merged, merged, true},
          .fc2 = {module + ".linear_fc2", out_width, merged, true},
          .activation = Activation::kGeluErf};
}

VisionDescription read_qwen3_vision(JsonFields& fields) {
  VisionDescription vision;
  vision.hidden_size = config_count(fields, "hidden_size", 1152);
  vision.intermediate_size = config_count(fields, "intermediate_size", 4304);
  const int64_t depth = config_layers(fields, "depth", 27, 0);
  vision.num_heads = config_count(fields, "num_heads", 16);
  vision.in_channels = config_count(fields, "in_channels", 3);
  vision.patch_size = config_side(fields, "patch_size", 16);
  vision.temporal_patch_size = config_side(fields, "temporal_patch_size", 2);
  vision.spatial_merge_size = config_count(fields, "spatial_merge_size", 2);
  vision.num_position_embeddings = config_count(fields, "num_position_embeddings", 2304);
  const int64_t out_width = config_count(fields, "out_hidden_size", 3584);
  require_config_text(fields, "hidden_act", {"gelu_pytorch_tanh"});
  JsonFields rope = config_rope(fields, {"axial", "default"});
  vision.rope_theta = read_rope_theta(fields, rope, 10000);
  check_vision_heads(fields, vision);
  vision.patch_embed = {kQwenVision + "patch_embed.proj", vision.hidden_size, vision.patch_width(),
                        true};
  vision.position_table = kQwenVision + "pos_embed";
  for (int64_t i = 0; i < depth; ++i) vision.blocks.push_back(vision_block(vision, i));
  vision.merger = qwen3_merger(vision, kQwenVision + "merger", out_width, false);
  return vision;
}

}  // namespace rematch
