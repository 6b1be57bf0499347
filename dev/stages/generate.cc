// `rematch-stages stage generate`: messages and images in, the model's answer out. Lines of a batch
// with equal options are decoded together.
#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "engine/ranks/device.h"
#include "engine/rollout/engine_factory.h"
#include "engine/rollout/sampler.h"
#include "engine/rollout/vllm/vllm_checks.h"
#include "model/patch_fit.h"
#include "model/text/chat_template.h"
#include "model/text/lossy.h"
#include "model/text/prompt.h"
#include "model/text/stop_ids.h"
#include "model/text/tokenizer.h"
#include "model/vision/image.h"
#include "model_input.h"
#include "tool_stages.h"

namespace rematch {
namespace {

constexpr int kDefaultSeed = 42;  // training.seed
constexpr int64_t kLengthStep = 1024;

// One input line, ready for an engine.
struct Request {
  Prompt prompt;
  GenerateOptions options;
  std::string group;  ///< equal for lines that one engine can answer together
};

VllmOptions vllm_options(const StageOptions& options) {
  VllmOptions vllm{.model_dir = options.model_dir,
                   .on_cpu = !choose_device(options.device).is_cuda(),
                   .bfloat16 = options.dtype == "bfloat16"};
  vllm.tensor_parallel_size = 1;
  return vllm;
}

// Rejects an unavailable backend before anything is loaded.
const std::string& checked_backend(const StageOptions& options) {
  const VllmOptions vllm = options.backend == "vllm" ? vllm_options(options) : VllmOptions{};
  check_backend_available(options.backend, vllm);
  return options.backend;
}

RepeatGuardSettings read_repeat_terminate(JsonFields fields) {
  RepeatGuardSettings guard;
  guard.enabled = fields.boolean_or("enabled", guard.enabled);
  guard.min_new_tokens = fields.integer_or("min_new_tokens", guard.min_new_tokens);
  guard.max_consecutive_token_repeats =
      fields.integer_or("max_consecutive_token_repeats", guard.max_consecutive_token_repeats);
  guard.ngram_size = fields.integer_or("ngram_size", guard.ngram_size);
  guard.ngram_repeats = fields.integer_or("ngram_repeats", guard.ngram_repeats);
  if (fields.has("max_object_keys"))
    guard.max_object_keys = fields.integer_or("max_object_keys", 0);
  fields.finish();
  return guard;
}

GenerateOptions read_options(JsonFields& fields) {
  GenerateOptions options;
  options.max_new_tokens = fields.integer_or("max_new_tokens", options.max_new_tokens);
  options.temperature = fields.number_or("temperature", options.temperature);
  options.top_p = fields.number_or("top_p", options.top_p);
  options.top_k = fields.integer_or("top_k", options.top_k);
  options.repetition_penalty = fields.number_or("repetition_penalty", options.repetition_penalty);
  options.seed = static_cast<uint64_t>(fields.integer_or("seed", kDefaultSeed));
  options.repeat_terminate = read_repeat_terminate(fields.object_or_empty("repeat_terminate"));
  return options;
}

class GenerateStage : public Stage {
 public:
  explicit GenerateStage(const StageOptions& options)
      : backend_(checked_backend(options)),
        vllm_(vllm_options(options)),
        tokenizer_(Tokenizer::load(options.model_dir)),
        chat_template_(ChatTemplate::load(options.model_dir)),
        patch_options_(PatchOptions::from_model_dir(options.model_dir)),
        stop_ids_(read_stop_ids(options.model_dir, *tokenizer_)),
        model_(Model::load(options.model_dir, {.dtype = dtype_of(options.dtype),
                                               .device = choose_device(options.device)})) {
    check_patches_fit(patch_options_, model_->description().vision, options.model_dir);
  }

  Json run(const Json& input) override { return answers_of({read_request(input)}).front(); }

  std::vector<Json> run_batch(const std::vector<Json>& inputs,
                              const std::vector<std::string>& names,
                              std::vector<Json>& errors) override {
    std::vector<Json> answers(inputs.size());
    std::map<std::string, std::vector<size_t>> groups;
    std::vector<Request> requests(inputs.size());
    std::vector<size_t> failed;
    for (size_t i = 0; i < inputs.size(); ++i) {
      try {
        requests[i] = read_request(inputs[i]);
        groups[requests[i].group].push_back(i);
      } catch (const UserError&) {
        failed.push_back(i);
      }
    }
    for (const auto& [group, lines] : groups) {
      std::vector<Request> together;
      for (const size_t i : lines) together.push_back(requests[i]);
      try {
        const std::vector<Json> given = answers_of(together);
        for (size_t k = 0; k < lines.size(); ++k) answers[lines[k]] = given[k];
      } catch (const UserError&) {
        failed.insert(failed.end(), lines.begin(), lines.end());
      }
    }
    // One by one, so that a bad line fails only itself.
    for (const size_t i : failed) {
      std::vector<Json> error(1);
      answers[i] = Stage::run_batch({inputs[i]}, {names[i]}, error).front();
      errors[i] = error.front();
    }
    pixels_.clear();
    return answers;
  }

 private:
  Request read_request(const Json& input) {
    JsonFields fields(input, input_origin(), "input");
    const Json& messages = fields.at("messages");
    const std::vector<std::string> paths = fields.texts("images");
    Request request{.prompt = {.where = "input"}, .options = read_options(fields), .group = {}};
    fields.finish();
    check_sampling_options(request.options);
    request.options.stop_ids = stop_ids_;
    Json key = input;  // the rest of the line decides which lines are decoded together
    for (const char* own : {"messages", "images"}) key.erase(own);
    request.group = key.dump(-1, ' ', true, Json::error_handler_t::replace);

    std::vector<GridThw> grids;
    for (const std::string& path : paths) {
      auto patches =
          std::make_shared<const Patches>(patchify(load_image(path), patch_options_, path));
      request.prompt.images.push_back({.path = path, .grid_thw = patches->grid_thw});
      grids.push_back(patches->grid_thw);
      pixels_[path] = std::move(patches);
    }
    request.prompt.token_ids =
        tokenizer_->encode(chat_template_.render(messages, /*add_generation_prompt=*/true));
    if (!grids.empty()) {
      const TokenId pad_id = tokenizer_->token_id("<|image_pad|>").value_or(-1);
      request.prompt.token_ids =
          expand_image_pads(request.prompt.token_ids, pad_id, grids, patch_options_.merge_size,
                            chat_template_.where());
    }
    return request;
  }

  // All requests of one group.
  std::vector<Json> answers_of(const std::vector<Request>& requests) {
    std::vector<Prompt> prompts;
    for (const Request& request : requests) prompts.push_back(request.prompt);
    GenerateOptions options = requests.front().options;
    options.batch_size = static_cast<int>(requests.size());
    const PixelGetter pixels = [this](const ImageRef& image) { return pixels_.at(image.path); };
    if (backend_ == "vllm") widen_vllm(prompts, options.max_new_tokens);
    const std::vector<Rollout> rollouts =
        make_engine(backend_, {model_, tokenizer_, pixels, vllm_}, options)->generate(prompts, {});
    std::vector<Json> answers;
    for (const Rollout& rollout : rollouts) {
      Json answer;
      answer["prompt_token_ids"] = rollout.prompt_token_ids;
      answer["response_token_ids"] = rollout.response_token_ids;
      answer["text"] = lossy_utf8(tokenizer_->decode_bytes(rollout.response_token_ids));
      answer["finish_reason"] = finish_reason_name(rollout.finish_reason);
      answers.push_back(std::move(answer));
    }
    return answers;
  }

  // The limits that the engine is started with, rounded up so that it also serves most of the later
  // lines.
  void widen_vllm(const std::vector<Prompt>& prompts, int max_new_tokens) {
    for (const Prompt& prompt : prompts) {
      const auto needed = static_cast<int64_t>(prompt.token_ids.size()) + max_new_tokens;
      vllm_.max_model_len =
          std::max(vllm_.max_model_len, (needed + kLengthStep - 1) / kLengthStep * kLengthStep);
      vllm_.max_images = std::max(vllm_.max_images, static_cast<int>(prompt.images.size()));
      set_max_model_len(vllm_, static_cast<int64_t>(prompt.token_ids.size()), max_new_tokens,
                        prompt.where);
    }
  }

  const std::string backend_;
  VllmOptions vllm_;
  const std::shared_ptr<const Tokenizer> tokenizer_;
  const ChatTemplate chat_template_;
  const PatchOptions patch_options_;
  const std::vector<TokenId> stop_ids_;
  const std::shared_ptr<const Model> model_;
  // of the lines being answered, by path
  std::map<std::string, std::shared_ptr<const Patches>> pixels_;
};

}  // namespace

std::unique_ptr<Stage> make_generate_stage(const StageOptions& options) {
  return std::make_unique<GenerateStage>(options);
}

}  // namespace rematch
