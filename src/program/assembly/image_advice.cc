#include "program/assembly/image_advice.h"

#include <fmt/core.h>

#include <algorithm>

#include "learn/estep/teach/truth_segment.h"

namespace rematch {
namespace {

constexpr int64_t kSamples = 32;
constexpr double kDominant = 0.6;  // of the tokens

}  // namespace

std::string image_advice(const Job& job) {
  const PatchOptions& patches = job.files.patches;
  if (!job.data.train || !patches.do_resize) return "";
  const Dataset& train = *job.data.train;
  const int64_t num_looks = std::min(kSamples, train.size());
  int64_t num_image = 0, num_all = 0, most = 0;
  for (int64_t i = 0; i < num_looks; ++i) {
    const Sample& sample = train.samples()[static_cast<size_t>(i * train.size() / num_looks)];
    Prompt prompt;
    prompt.where = sample.where;
    std::vector<GridThw> grids;
    for (const ImageRef& image : image_refs(sample, patches)) grids.push_back(image.grid_thw);
    prompt.token_ids = job.files.prompts->encode(grids, sample.prompt);
    if (!grids.empty()) prompt.resized_px = resized_px(grids.front(), patches);
    const int64_t side = patches.side_multiple_px();
    const ImageSize size = processed_size(
        {.width_px = sample.width_px, .height_px = sample.height_px}, patches, sample.where);
    const int64_t tokens = (size.width_px / side) * (size.height_px / side);
    num_image += tokens * std::ssize(grids);
    most = std::max(most, tokens);
    num_all += build_ground_truth_segment(prompt, sample.objects, *job.files.format).encoded_len();
  }
  const double share = static_cast<double>(num_image) / static_cast<double>(num_all);
  if (share < kDominant) return "";
  const int64_t area = int64_t{patches.side_multiple_px()} * patches.side_multiple_px();
  return fmt::format(
      "images are {:.0f} % of the tokens, up to {} each: template.max_pixels: {} halves the "
      "largest",
      100 * share, most, most / 2 * area);
}

}  // namespace rematch
