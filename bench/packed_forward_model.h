#pragma once
#include <cstdint>
#include <string>

namespace rematch::bench {

/// Sizes of a random checkpoint; what is not here is taken from the source's config.json.
struct RandomModelSize {
  int64_t hidden = 384, intermediate = 1024, layers = 12, heads = 6, kv_heads = 2, head_dim = 64;
  int64_t vision_hidden = 256, vision_intermediate = 1024, vision_depth = 6, vision_heads = 4;
};

/// Writes a checkpoint with random weights: tokenizer, templates and processor of `source`, towers
/// of `size`. 31 M parameters by default.
void write_random_model(const std::string& source, const std::string& directory,
                        const RandomModelSize& size = {});

}  // namespace rematch::bench
