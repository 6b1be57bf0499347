#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace rematch {

/// Text tower of a Qwen3-VL checkpoint (MODEL 1); defaults are transformers' class defaults where a file may leave a key out.
struct TextConfig {
  int64_t vocab_size = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_hidden_layers = 0;
  int64_t num_attention_heads = 0;
  int64_t num_key_value_heads = 0;
  int64_t head_dim = 128;
  double rms_norm_eps = 1e-6;
  double rope_theta = 500000;
  std::array<int64_t, 3> mrope_section{24, 20, 20};
  int64_t pad_token_id = -1;  ///< embedding row that takes no gradient; -1 = none
};

/// Vision tower of a Qwen3-VL checkpoint.
struct VisionConfig {
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t depth = 0;
  int64_t num_heads = 0;
  int64_t in_channels = 3;
  int64_t patch_size = 16;
  int64_t temporal_patch_size = 2;
  int64_t spatial_merge_size = 2;
  int64_t num_position_embeddings = 2304;
  int64_t out_hidden_size = 0;
  double rope_theta = 10000;
  std::vector<int64_t> deepstack_visual_indexes;
};

struct Qwen3VLConfig {
  TextConfig text;
  VisionConfig vision;
  bool tie_word_embeddings = false;  ///< the top-level flag only
  int64_t image_token_id = 151655;
  int64_t vision_start_token_id = 151652;

  /// Reads and checks DIR/config.json. @throws UserError (data) for another model type, unsupported rope types (by name), damaged values.
  static Qwen3VLConfig from_model_dir(const std::string& model_dir);
};

}  // namespace rematch
