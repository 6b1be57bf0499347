#include "program/assembly/image_advice.h"

#include <fmt/core.h>

#include <algorithm>

#include "learn/estep/teach/truth_segment.h"

namespace rematch {
namespace {

constexpr int64_t kSamples = 32;
constexpr double kDominant = 0.5;  // of the tokens

}  // namespace

std::string image_advice_text(const ImageTokens& tokens, int64_t side_px) {
  if (tokens.num_all == 0) return "";
  const double share = static_cast<double>(tokens.num_image) / static_cast<double>(tokens.num_all);
  if (share < kDominant) return "";
  return fmt::format(
      "images are {:.0f} % of the tokens, up to {} each: template.max_pixels: {} halves the "
      "largest",
      100 * share, tokens.most, tokens.most / 2 * side_px * side_px);
}

std::string image_advice(const Job& job) {
  const PatchOptions& patches = job.files.patches;
  if (!job.data.train || !patches.do_resize) return "";
  const Dataset& train = *job.data.train;
  const int64_t num_looks = std::min(kSamples, train.size());
  const int64_t side_px = patches.side_multiple_px();
  int64_t num_image = 0, num_all = 0, most = 0;
  for (int64_t i = 0; i < num_looks; ++i) {
    const Sample& sample = train.samples()[static_cast<size_t>(i * train.size() / num_looks)];
    Prompt prompt;
    prompt.where = sample.where;
    std::vector<GridThw> grids;
    for (const ImageRef& image : image_refs(sample, patches)) grids.push_back(image.grid_thw);
    prompt.token_ids = job.files.prompts->encode(grids, sample.prompt);
    if (!grids.empty()) prompt.resized_px = resized_px(grids.front(), patches);
    const ImageSize size = processed_size(
        {.width_px = sample.width_px, .height_px = sample.height_px}, patches, sample.where);
    const int64_t tokens = (size.width_px / side_px) * (size.height_px / side_px);
    num_image += tokens * std::ssize(grids);
    most = std::max(most, tokens);
    num_all += build_ground_truth_segment(prompt, sample.objects, *job.files.format).encoded_len();
  }
  return image_advice_text({.num_image = num_image, .num_all = num_all, .most = most}, side_px);
}

}  // namespace rematch
