#include "vllm/toy_plugin.h"

#include <ATen/ATen.h>

#include "model/model.h"

namespace rematch::test {

ToyPlugin::ToyPlugin(const EngineParts& parts, const GenerateOptions& options,
                     const PatchOptions& patches)
    : parts_(parts), options_(options), patches_(patches) {
  const std::shared_ptr<Model> model = Model::load(parts.vllm.model_dir, {});
  const at::NoGradGuard no_grad;
  // what is not handed over shows
  for (const NamedParameter& parameter : model->parameters()) at::Tensor(parameter.tensor).zero_();
  parts_.model = model;
  parts_.pixels = [this](const ImageRef& image) { return pixels_.at(image.path); };
}

void ToyPlugin::load_weights(const std::vector<std::pair<std::string, at::Tensor>>& layer) {
  const at::NoGradGuard no_grad;
  for (const auto& [name, tensor] : layer) parts_.model->parameter(name).copy_(tensor);
}

std::vector<std::string> ToyPlugin::end_sync(int64_t version) {
  ++num_syncs;
  version_ = version;
  return {};
}

void ToyPlugin::add(const VllmRequest& request) {
  ++num_requests;
  Prompt prompt{.sample_id = num_requests, .where = request.id};
  const auto pad = static_cast<int>(parts_.model->description().image_token_id);
  size_t image_idx = 0;
  for (const int id : request.prompt_token_ids) {
    int64_t count = 1;
    if (id == pad) {
      const VllmImage& given = request.images.at(image_idx);
      const std::string name = request.id + "/" + std::to_string(image_idx++);
      const Image image{.width_px = given.width_px, .height_px = given.height_px, .rgb = given.rgb};
      pixels_[name] = std::make_shared<const Patches>(patchify(image, patches_, name));
      prompt.images.push_back({.path = name, .grid_thw = pixels_[name]->grid_thw});
      count = pixels_[name]->num_rows() / (patches_.merge_size * patches_.merge_size);
    }
    prompt.token_ids.insert(prompt.token_ids.end(), static_cast<size_t>(count), id);
  }
  waiting_.emplace_back(request.id, std::move(prompt));
}

std::vector<VllmAnswer> ToyPlugin::step() {
  // The last first: answers come in any order.
  const auto [id, prompt] = waiting_.back();
  waiting_.pop_back();
  const Rollout rollout = make_engine("hf", parts_, options_)->generate({prompt}, {}).front();
  VllmAnswer answer{
      .id = id, .finish_reason = rollout.finish_reason == FinishReason::kStop ? "stop" : "length"};
  answer.prompt_token_ids.assign(prompt.token_ids.begin(), prompt.token_ids.end());
  answer.token_ids.assign(rollout.response_token_ids.begin(), rollout.response_token_ids.end());
  answer.token_logprobs.assign(rollout.token_logprobs.begin(), rollout.token_logprobs.end());
  if (rollout.finish_reason == FinishReason::kStop) {
    answer.token_ids.push_back(options_.stop_ids.front());
    answer.token_logprobs.push_back(0);
  }
  if (drift_at < answer.prompt_token_ids.size()) answer.prompt_token_ids[drift_at] += 1;
  return {answer};
}

}  // namespace rematch::test
