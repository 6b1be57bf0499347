// The program's side of bench/rollout.py: the native engine on prompts with given answer lengths.
// One command per input line, one line of answer.
#include <ATen/Parallel.h>
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <ctime>
#include <functional>
#include <iostream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json.h"
#include "engine/rollout/native/cpu/runner.h"
#include "engine/rollout/native/native_engine.h"
#include "model/text/tokenizer.h"
#include "model/vision/image.h"

namespace rematch::bench {
namespace {

using Clock = std::chrono::steady_clock;

// Processor time of all threads, which other load affects least.
double cpu_seconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

struct Scene {
  std::vector<Prompt> prompts;
  std::vector<int> limits;  ///< tokens of each answer
  std::map<std::string, std::shared_ptr<const Patches>> pixels;
  int stop_id = 0;  ///< a token that the model never chooses
};

Scene read_scene(const std::string& dir) {
  const Json json = read_json_file(dir + "/prompts.json");
  const PatchOptions patches = PatchOptions::from_model_dir(dir);
  Scene scene;
  scene.stop_id = json.at("stop_id").get<int>();
  for (const Json& item : json.at("prompts")) {
    const auto path = item.at("image").get<std::string>();
    scene.pixels[path] = std::make_shared<const Patches>(patchify(load_image(path), patches, path));
    Prompt prompt{.sample_id = static_cast<int64_t>(scene.prompts.size()), .where = path};
    prompt.token_ids = item.at("token_ids").get<std::vector<int>>();
    prompt.images.push_back({.path = path, .grid_thw = scene.pixels[path]->grid_thw});
    scene.prompts.push_back(std::move(prompt));
    scene.limits.push_back(item.at("limit").get<int>());
  }
  return scene;
}

class Worker {
 public:
  explicit Worker(const std::string& dir)
      : scene_(read_scene(dir)), model_(Model::load(dir, {})), tokenizer_(Tokenizer::load(dir)) {
    for (const NamedParameter& parameter : model_->parameters()) {
      if (parameter.name.starts_with("model.language_model."))
        num_text_parameters_ += parameter.tensor.numel();
    }
  }

  Json answer(const Json& command) {
    if (command.contains("decode"))
      return decode(command.at("decode").get<int>(), command.at("tokens").get<int>());
    return run(command.at("prompts").get<std::vector<size_t>>(), command.at("together").get<bool>(),
               command.value("drafts", true));
  }

 private:
  // A new one for every command: answers of earlier rounds must not help the drafts of later ones.
  std::unique_ptr<NativeEngine> make_engine(bool drafts) {
    auto engine = std::make_unique<NativeEngine>(
        NativeEngine::Parts{
            .model = model_,
            .tokenizer = tokenizer_,
            .pixels = [this](const ImageRef& image) { return scene_.pixels.at(image.path); },
            .runner = make_cpu_runner(model_),
            .encoder = make_cpu_encoder(model_)},
        GenerateOptions{
            {.max_new_tokens = *std::max_element(scene_.limits.begin(), scene_.limits.end()),
             .native = {.drafts = drafts}},
            0,
            {scene_.stop_id}});
    engine->observe_logits([this](size_t prompt_idx, size_t position, std::span<float> logits_V) {
      end_answers(prompt_idx, position, logits_V);
    });
    return engine;
  }

  Json run(const std::vector<size_t>& chosen, bool together, bool drafts) {
    const auto engine = make_engine(drafts);
    Json ids = Json::array();
    int64_t num_tokens = 0;
    std::vector<std::vector<size_t>> groups;
    for (const size_t idx : chosen) {
      if (groups.empty() || !together) groups.emplace_back();
      groups.back().push_back(idx);
    }
    const double cpu_begin = cpu_seconds();
    const auto begin = Clock::now();
    for (const std::vector<size_t>& group : groups) {
      std::vector<Prompt> prompts;
      limits_.clear();
      for (const size_t idx : group) {
        prompts.push_back(scene_.prompts.at(idx));
        limits_.push_back(scene_.limits.at(idx));
        num_tokens += limits_.back();
      }
      for (const Rollout& rollout : engine->generate(prompts, {}))
        ids.push_back(rollout.response_token_ids);
      engine->release();  // as the trainer does between two windows
    }
    const NativeEngine::Stats& stats = engine->stats();
    return {{"seconds", seconds_since(begin)},
            {"cpu_s", cpu_seconds() - cpu_begin},
            {"tokens", num_tokens},
            {"ids", ids},
            {"near_ties", engine->num_near_ties()},
            {"steps", stats.num_steps},
            {"rows", stats.num_rows},
            {"drafts", stats.num_drafts},
            {"right_drafts", stats.num_right_drafts}};
  }

  // Time of a step with `num_rows` running answers, all past their prompts.
  Json decode(int num_rows, int num_tokens) {
    const auto engine = make_engine(/*drafts=*/false);
    constexpr size_t kFirst = 8;  // by then every sequence decodes
    std::vector<Prompt> prompts;
    for (int i = 0; i < num_rows; ++i)
      prompts.push_back(scene_.prompts.at(static_cast<size_t>(i) % scene_.prompts.size()));
    limits_.assign(prompts.size(), num_tokens);
    Clock::time_point first, last;
    double cpu_first = 0, cpu_last = 0;
    on_first_answer_ = [&](size_t position) {
      last = Clock::now();
      cpu_last = cpu_seconds();
      if (position == kFirst) first = last, cpu_first = cpu_last;
    };
    engine->generate(prompts, {});
    on_first_answer_ = {};
    const auto num_steps = static_cast<double>(static_cast<size_t>(num_tokens) - 1 - kFirst);
    const double seconds = std::chrono::duration<double>(last - first).count() / num_steps;
    return {{"rows", num_rows},
            {"step_s", seconds},
            {"cpu_s", (cpu_last - cpu_first) / num_steps},
            {"gb_per_s", 4e-9 * static_cast<double>(num_text_parameters_) / seconds},
            {"gflop_per_s", 2e-9 * static_cast<double>(num_text_parameters_) * num_rows / seconds}};
  }

  // The last token of an answer is made the stop token: as many steps as an answer that ends there
  // by its own limit.
  void end_answers(size_t prompt_idx, size_t position, std::span<float> logits_V) {
    if (prompt_idx == 0 && on_first_answer_) on_first_answer_(position);
    if (static_cast<int>(position) + 1 != limits_[prompt_idx]) return;
    logits_V[static_cast<size_t>(scene_.stop_id)] = std::numeric_limits<float>::max();
  }

  Scene scene_;
  std::shared_ptr<const Model> model_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<int> limits_;  ///< of the prompts being answered
  std::function<void(size_t position)> on_first_answer_;
  int64_t num_text_parameters_ = 0;
};

}  // namespace
}  // namespace rematch::bench

int main(int argc, char** argv) {
  CLI::App app("the native engine's side of bench/rollout.py");
  std::string dir;
  int num_threads = 2;
  app.add_option("--dir", dir, "checkpoint with prompts.json")->required();
  app.add_option("--threads", num_threads);
  CLI11_PARSE(app, argc, argv);
  try {
    at::set_num_threads(num_threads);
    rematch::bench::Worker worker(dir);
    std::string line;
    while (std::getline(std::cin, line))
      std::cout << worker.answer(rematch::parse_json(line, "command")).dump() << std::endl;
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}
