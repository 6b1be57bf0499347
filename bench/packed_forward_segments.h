#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flow/segment.h"
#include "vision/patches.h"

namespace rematch::bench {

/// Distribution of segment lengths over 16–600 tokens.
enum class LengthMix {
  kEven,  ///< uniform over lengths
  kLog,   ///< uniform over the logarithm of lengths: many short segments, few long ones
};

struct WorkloadOptions {
  LengthMix mix = LengthMix::kLog;
  int64_t num_segments = 64;
  uint64_t seed = 0;
  bool with_images = true;
};

/// Segments and the settings their losses need.
struct Workload {
  std::vector<std::shared_ptr<const Segment>> segments;
  std::array<int, 1000> coord_token_ids{};
  int64_t num_tokens = 0, max_len = 0, min_len = 0;
};

/// Segments as training builds them, with `model_dir`'s tokenizer and chat template: prompt, image
/// pads, the answer of a scene, its supervision (the first half of the answer serves as the kept
/// prefix: only its coordinates are supervised). The scenes are generated so that the lengths
/// follow `mix`; an image takes up to a third of its segment.
Workload make_workload(const std::string& model_dir, const WorkloadOptions& options);

/// Noise in the shape of an image of 16-pixel patches.
std::shared_ptr<const Patches> noise_pixels(const ImageRef& image);

}  // namespace rematch::bench
