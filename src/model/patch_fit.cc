#include "model/patch_fit.h"

#include <fmt/core.h>

#include <vector>

#include "base/error.h"

namespace rematch {
namespace {

constexpr int64_t kPatchChannels = 3;  // pixels are RGB

}  // namespace

void check_patches_fit(const PatchOptions& patches, const VisionDescription& vision,
                       const std::string& model_dir) {
  struct Pair {
    const char* name;    ///< the processor's setting
    const char* config;  ///< the tower's setting
    int64_t found;
    int64_t expected;
  };
  const Pair pairs[] = {
      {"patch_size", "patch_size", patches.patch_size, vision.patch_size},
      {"temporal_patch_size", "temporal_patch_size", patches.temporal_patch_size,
       vision.temporal_patch_size},
      {"merge_size", "spatial_merge_size", patches.merge_size, vision.spatial_merge_size},
      {"channels of a pixel", "in_channels", kPatchChannels, vision.in_channels}};
  std::vector<Problem> problems;
  for (const Pair& pair : pairs) {
    if (pair.found == pair.expected) continue;
    problems.push_back(
        {.error = "the image processor and the vision tower of a model disagree",
         .where = model_dir,
         .what = fmt::format("{} is {}, but {} of vision_config in config.json is {}", pair.name,
                             pair.found, pair.config, pair.expected),
         .fix = "copy config.json and preprocessor_config.json (or processor_config.json) from the "
                "same checkpoint"});
  }
  if (!problems.empty()) throw UserError(ErrorKind::kData, std::move(problems));
}

}  // namespace rematch
