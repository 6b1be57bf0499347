// Requests of VllmEngine to vLLM.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "engine/ranks/gather.h"
#include "engine/rollout/vllm/rgb_image.h"
#include "engine/rollout/vllm/vllm_engine.h"

namespace rematch {
namespace {

// A separate random stream, because this backend draws differently from the others.
constexpr uint64_t kVllmStream = 0x766c6c6d;

std::string sampling_json(const Prompt& prompt, const GenerateOptions& options) {
  Json sampling;
  sampling["max_tokens"] = options.max_new_tokens;
  sampling["temperature"] = options.temperature;
  sampling["top_p"] = options.top_p;
  if (options.top_k > 0) sampling["top_k"] = options.top_k;
  sampling["repetition_penalty"] = options.repetition_penalty;
  sampling["stop_token_ids"] = options.stop_ids;
  sampling["ignore_eos"] = true;  // the stop ids are sufficient
  sampling["detokenize"] = false;
  if (options.temperature > 0) {
    const uint64_t key = random_key(options.seed, kVllmStream, prompt.epoch, prompt.sample_id);
    sampling["seed"] = static_cast<int64_t>(key >> 1);
  }
  return sampling.dump();
}

}  // namespace

VllmRequest VllmEngine::make_request(const Prompt& prompt, const std::string& id) const {
  VllmRequest request{.id = id, .sampling_json = sampling_json(prompt, options_)};
  const auto pad = static_cast<int>(parts_.model->description().image_token_id);
  size_t image_idx = 0;
  for (size_t i = 0; i < prompt.token_ids.size(); ++i) {
    request.prompt_token_ids.push_back(prompt.token_ids[i]);
    if (prompt.token_ids[i] != pad || image_idx >= prompt.images.size()) continue;
    // vLLM expands each pad to the same number of pads.
    const auto& grid = prompt.images[image_idx++].grid_thw;
    const int64_t num_pads =
        grid[0] * grid[1] * grid[2] / (int64_t{patches_.merge_size} * patches_.merge_size);
    i += static_cast<size_t>(std::max<int64_t>(num_pads - 1, 0));
  }
  return request;
}

std::vector<VllmImage> VllmEngine::load_images(const Prompt& prompt) const {
  std::vector<VllmImage> images;
  for (const ImageRef& image : prompt.images) {
    Image picture = rgb_image(*parts_.pixels(image), patches_);
    images.push_back({picture.width_px, picture.height_px, std::move(picture.rgb)});
  }
  return images;
}

// The requests of all ranks that share the engine. Each rank loads the images of an equal part of
// the prompts and sends them to the others.
std::vector<VllmRequest> VllmEngine::make_requests_of_all(const Prompt* prompts, size_t count) {
  Group& group = parts_.vllm.ranks != nullptr ? *parts_.vllm.ranks : alone();
  const auto rank = static_cast<size_t>(group.rank()), size = static_cast<size_t>(group.size());
  // Width, height and bytes, as text, which is sent whole.
  using Sent = std::pair<std::array<int, 2>, std::string>;
  std::vector<VllmRequest> requests;
  std::vector<std::vector<Sent>> mine;
  ranks_.together([&] {
    for (size_t i = 0; i < count; ++i) {
      requests.push_back(make_request(prompts[i], fmt::format("rematch-{}", ++num_requests_)));
      if (i * size / count != rank) continue;
      requests.back().images = load_images(prompts[i]);
      if (group.is_alone()) continue;
      mine.emplace_back();
      for (const VllmImage& image : requests.back().images) {
        mine.back().emplace_back(std::array{image.width_px, image.height_px},
                                 std::string(image.rgb.begin(), image.rgb.end()));
      }
    }
  });
  if (group.is_alone()) return requests;
  auto request = requests.begin();
  for (const auto& part : gather(group, mine)) {
    for (const std::vector<Sent>& images : part) {
      request->images.clear();
      for (const auto& [px, rgb] : images)
        request->images.push_back({px[0], px[1], {rgb.begin(), rgb.end()}});
      ++request;
    }
  }
  return requests;
}

}  // namespace rematch
