#include "packed_forward_segments.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/random.h"
#include "estep/target/truth_segment.h"
#include "text/chat_template.h"
#include "text/prompt.h"

namespace rematch::bench {
namespace {

constexpr int kShortest = 16, kLongest = 600;

// Turns a scene into tokens.
struct Writer {
  explicit Writer(const std::string& model_dir)
      : tokenizer(Tokenizer::load(model_dir)),
        format(make_answer_format("coord_tokens", tokenizer, model_dir)),
        prompts(tokenizer, std::make_shared<const ChatTemplate>(ChatTemplate::load(model_dir)),
                {.texts = {.system_prompt = "List the objects as JSON.",
                           .user_prompt = "Find every digit and mark."}}) {}
  std::shared_ptr<const Tokenizer> tokenizer;
  std::unique_ptr<const AnswerFormat> format;
  PromptEncoder prompts;
};

int draw_length(LengthMix mix, uint64_t key) {
  const double u = random_uniform(key, 0);
  if (mix == LengthMix::kEven) return kShortest + static_cast<int>(u * (kLongest - kShortest + 1));
  return static_cast<int>(kShortest * std::pow((kLongest + 1.0) / kShortest, u));
}

std::vector<SceneObject> draw_objects(size_t count, uint64_t key) {
  static const std::array<const char*, 6> kDescs{"red circle",     "green square",
                                                 "blue rectangle", "yellow circle",
                                                 "purple square",  "orange triangle"};
  std::vector<SceneObject> objects;
  for (size_t i = 0; i < count; ++i) {
    SceneObject& object = objects.emplace_back();
    object.desc = kDescs[random_below(key, 8 * i, kDescs.size())];
    for (uint64_t k = 1; k <= 4; ++k)
      object.geometry.bins.push_back(static_cast<int>(random_below(key, 8 * i + k, kNumBins)));
  }
  return objects;
}

// The first half of the answer becomes a kept prefix.
void keep_half(Segment& segment) {
  const int border = segment.prompt_len + (segment.encoded_len() - segment.prompt_len) / 2;
  for (int i = segment.prompt_len; i < border; ++i)
    segment.labels[static_cast<size_t>(i)] = kIgnoreLabel;
  for (Slot& slot : segment.slots[kCoordSlots]) {
    if (slot.position < border) slot.source = SlotSource::kPrefix;
  }
}

// The longest segment of the drawn image with at most `target` tokens; none if all are longer.
Segment write_segment(const Writer& writer, int target, int64_t id, bool with_image, uint64_t key) {
  Prompt prompt{.sample_id = id};
  std::vector<GridThw> grids;
  if (with_image && target >= 48) {
    const auto side = static_cast<int64_t>(std::sqrt(target / 3.0)) -
                      static_cast<int64_t>(random_below(key, 1, 2));
    grids.push_back({1, 2 * side, 2 * side});
    prompt.images.push_back({.path = "noise" + std::to_string(id), .grid_thw = grids.back()});
  }
  prompt.token_ids = writer.prompts.encode(grids);
  Segment longest = build_ground_truth_segment(prompt, {}, *writer.format);
  for (size_t count = 1; count < 64; ++count) {
    Segment more = build_ground_truth_segment(prompt, draw_objects(count, key), *writer.format);
    if (more.encoded_len() > target) break;
    longest = std::move(more);
  }
  keep_half(longest);
  return longest;
}

}  // namespace

Workload make_workload(const std::string& model_dir, const WorkloadOptions& options) {
  const Writer writer(model_dir);
  Workload workload;
  workload.coord_token_ids = writer.format->coords()->ids();
  for (int64_t id = 0; id < options.num_segments; ++id) {
    const uint64_t key = random_key({options.seed, static_cast<uint64_t>(id), 41});
    const int target = draw_length(options.mix, key);
    auto segment = std::make_shared<const Segment>(
        write_segment(writer, target, id, options.with_images, key));
    workload.num_tokens += segment->encoded_len();
    workload.max_len = std::max<int64_t>(workload.max_len, segment->encoded_len());
    workload.min_len = id == 0 ? segment->encoded_len()
                               : std::min<int64_t>(workload.min_len, segment->encoded_len());
    workload.segments.push_back(std::move(segment));
  }
  return workload;
}

std::shared_ptr<const Patches> noise_pixels(const ImageRef& image) {
  auto patches = std::make_shared<Patches>();
  patches->grid_thw = image.grid_thw;
  patches->row_width = 3 * 2 * 16 * 16;
  patches->pixel_values.resize(static_cast<size_t>(patches->num_rows() * patches->row_width));
  const uint64_t key = random_key({image.path.size(), static_cast<uint64_t>(image.grid_thw[1])});
  for (size_t i = 0; i < patches->pixel_values.size(); ++i)
    patches->pixel_values[i] = static_cast<float>(random_uniform(key, i) * 2 - 1);
  return patches;
}

}  // namespace rematch::bench
