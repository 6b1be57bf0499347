#include "vllm/live_vllm.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "base/random.h"
#include "engine/rollout/vllm/plugin_loader.h"
#include "model/row.h"
#include "model/text/chat_template.h"
#include "model/text/prompt.h"
#include "model/text/stop_ids.h"
#include "model/text/tokenizer.h"
#include "model/tiny_checkpoint.h"
#include "support/capture.h"
#include "support/paths.h"

namespace rematch::test {
namespace {

// A scene of coloured blocks; its number decides size and content.
Image picture(uint64_t number) {
  const uint64_t key = random_key({number});
  Image image{.width_px = static_cast<int>(32 * (3 + random_below(key, 0, 4))),
              .height_px = static_cast<int>(32 * (3 + random_below(key, 1, 4)))};
  image.rgb.assign(static_cast<size_t>(image.width_px * image.height_px * 3), 230);
  for (uint64_t block = 0; block < 4; ++block) {
    const auto draw = [&](uint64_t what, int bound) {
      return static_cast<int>(
          random_below(key, 10 * block + what + 2, static_cast<uint64_t>(bound)));
    };
    const int left = draw(0, image.width_px - 20), top = draw(1, image.height_px - 20),
              width = 10 + draw(2, 60), height = 10 + draw(3, 60);
    const int colour = draw(4, 8);
    for (int y = top; y < std::min(top + height, image.height_px); ++y) {
      for (int x = left; x < std::min(left + width, image.width_px); ++x) {
        for (int channel = 0; channel < 3; ++channel) {
          image.rgb[static_cast<size_t>((y * image.width_px + x) * 3 + channel)] =
              static_cast<uint8_t>(((colour >> channel) & 1) * 215 + draw(5, 30));
        }
      }
    }
  }
  return image;
}

// Logits behind the last of some ids, by the model itself.
at::Tensor next_logits(const Questions& asked, const Prompt& prompt,
                       const std::vector<int>& answered) {
  const at::NoGradGuard no_grad;
  auto segment = std::make_shared<Segment>();
  segment->token_ids = prompt.token_ids;
  segment->token_ids.insert(segment->token_ids.end(), answered.begin(), answered.end());
  segment->images = prompt.images;
  const at::Tensor hidden =
      forward_row(*asked.model, make_row({.segments = {segment}}, asked.parts.pixels));
  return asked.model->head_KV(hidden.slice(0, hidden.size(0) - 1)).flatten().to(at::kFloat);
}

// @param load  the picture behind a prompt's path
Questions make_questions(const std::string& model_dir, const std::vector<std::string>& paths,
                         Image (*load)(const std::string&)) {
  Questions asked;
  asked.model = Model::load(model_dir, {});
  const auto tokenizer = Tokenizer::load(model_dir);
  const PatchOptions patches = PatchOptions::from_model_dir(model_dir);
  const PromptEncoder encoder(
      tokenizer, std::make_shared<const ChatTemplate>(ChatTemplate::load(model_dir)),
      {.texts = {.system_prompt = "List the objects as JSON.", .user_prompt = "Find every shape."},
       .merge_size = patches.merge_size});
  asked.stop_ids = read_stop_ids(model_dir, *tokenizer);
  asked.parts = {
      .model = asked.model,
      .tokenizer = tokenizer,
      .pixels = [patches, load](const ImageRef& image) {
        return std::make_shared<const Patches>(patchify(load(image.path), patches, image.path));
      }};
  asked.parts.vllm = {{.tensor_parallel_size = 1,
                       .gpu_memory_utilization = 0.1,
                       .max_model_len = 512,
                       .max_num_seqs = 64}};
  asked.parts.vllm.model_dir = model_dir;
  for (const std::string& path : paths) {
    const Image image = load(path);
    const GridThw grid = processed_grid(image.size(), patches, path);
    asked.prompts.push_back({.sample_id = static_cast<int64_t>(asked.prompts.size()),
                             .token_ids = encoder.encode({grid}),
                             .images = {{.path = path, .grid_thw = grid}},
                             .where = "questions:" + path});
  }
  return asked;
}

bool nearly_tie(const at::Tensor& logits) {
  const at::Tensor best = std::get<0>(logits.topk(2));
  return (best[0] - best[1]).item<double>() < 1e-5 * logits.abs().max().item<double>();
}

}  // namespace

const std::string& why_no_vllm() {
  static const std::string reason = [] {
    try {
      check_backend_available("vllm",
                              {{.tensor_parallel_size = 1}, 1, source_path("tests/shapes/model")});
      return std::string();
    } catch (const UserError& error) {
      return error.problems().front().error + ": " + error.problems().front().what;
    }
  }();
  return reason;
}

Questions questions(const std::string& model_dir, int num_prompts) {
  std::vector<std::string> numbers;
  for (int i = 0; i < num_prompts; ++i) numbers.push_back(std::to_string(i));
  return make_questions(model_dir, numbers,
                        [](const std::string& number) { return picture(std::stoull(number)); });
}

Questions questions_about(const std::string& model_dir, const std::vector<std::string>& paths) {
  return make_questions(model_dir, paths, [](const std::string& path) { return load_image(path); });
}

void make_goldens(const std::string& arguments) {
  // The plug-in has set the variable for the Python in this process.
  const ProcessResult result = run_command("env -u PYTHONSAFEPATH OMP_NUM_THREADS=1 " +
                                           find_interpreter("python3").executable + " " +
                                           source_path("dev/goldens/" + arguments));
  ASSERT_EQ(result.exit_code, 0) << result.err;
}

std::vector<std::vector<int>> Questions::answers(RolloutEngine& engine) const {
  std::vector<std::vector<int>> ids;
  for (const Rollout& rollout : engine.generate(prompts, {}))
    ids.push_back(rollout.response_token_ids);
  return ids;
}

const std::string& random_model() {
  static const CheckpointCopy* const copy = [] {
    auto* const made = new CheckpointCopy(source_path("tests/shapes/model"));
    at::manual_seed(5);
    for (TensorEntry& entry : made->tensors) {
      const bool is_norm =
          entry.tensor.dim() == 1 && entry.name.find("weight") != std::string::npos;
      entry.tensor = is_norm ? at::ones_like(entry.tensor, at::kFloat)
                             : at::randn(entry.tensor.sizes()) * 0.08;
    }
    made->tensor("lm_head.weight") =
        at::randn(made->tensor("model.language_model.embed_tokens.weight").sizes()) * 0.08;
    made->edit_config([](Json& config) {
      config["tie_word_embeddings"] = false;
      config["text_config"]["tie_word_embeddings"] = false;
      config["dtype"] = "float32";
    });
    made->edit_json("preprocessor_config.json", [](Json& processor) {
      processor["size"] = {{"shortest_edge", 4096}, {"longest_edge", 32768}};
    });
    made->write_weights();
    return made;
  }();
  return copy->path();
}

const std::string& windows_model() {
  static const std::string path = [] {
    static const TempDir directory;
    make_goldens("model_qwen2_5vl.py serve " + directory.file("model") + " 3");
    return directory.file("model");
  }();
  return path;
}

Differences compare(const Questions& asked, const std::vector<std::vector<int>>& hf,
                    const std::vector<std::vector<int>>& vllm) {
  Differences found;
  for (size_t i = 0; i < hf.size(); ++i) {
    if (hf[i] == vllm[i]) continue;
    const auto first =
        std::mismatch(hf[i].begin(), hf[i].end(), vllm[i].begin(), vllm[i].end()).first;
    const bool tie = nearly_tie(next_logits(asked, asked.prompts[i], {hf[i].begin(), first}));
    ++(tie ? found.near_ties : found.unexplained);
  }
  return found;
}

}  // namespace rematch::test
