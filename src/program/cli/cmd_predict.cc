// `rematch predict MODEL IMAGE|DIR …`: what a trained model sees in images.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>

#include "base/error.h"
#include "engine/ranks/ranks.h"
#include "model/checkpoint/model_dir.h"
#include "program/assembly/predictor.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "program/cli/predict_images.h"
#include "program/cli/predict_output.h"

namespace rematch {
namespace {

constexpr int64_t kImagesTogether = 16;

struct PredictArguments : AskArguments {
  Strings images;
  PredictFormat format;
};

int run_predict(const PredictArguments& arguments) {
  require_alone("rematch predict");
  if (!arguments.format.ids.empty() && arguments.format.format != "coco")
    throw config_error({.error = "--ids needs --format coco",
                        .where = "--ids " + arguments.format.ids,
                        .what = "lines of JSON have no ids",
                        .fix = "add --format coco"});
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  const Strings images = list_images(arguments.images, *terminal);
  JobSource source = ask_about_images(arguments.asked);
  InputFiles inputs;
  for (const std::string& directory : {source.checkpoint.path, source.checkpoint.base})
    add_model(inputs, directory);
  for (const std::string& image : images) inputs.add(image);
  PredictOutput output(arguments.format, images, std::move(inputs), *terminal);
  Predictor predictor(std::move(source), {.device = arguments.device, .terminal = *terminal});
  for (auto begin = images.begin(); begin != images.end();) {
    const auto end = begin + std::min<std::ptrdiff_t>(kImagesTogether, images.end() - begin);
    for (Prediction& one : predictor.predict({begin, end})) output.add(std::move(one));
    begin = end;
    terminal->progress(
        {.phase = "predict", .done = output.num_added(), .total = std::ssize(images)});
  }
  terminal->finish_progress();
  output.finish();
  return 0;
}

void add_model_options(CLI::App& predict, PredictArguments& arguments) {
  predict
      .add_option("MODEL", arguments.asked.model,
                  "checkpoint: a Hugging Face directory or a PEFT adapter; or a run directory, "
                  "whose best checkpoint is taken")
      ->required();
  predict
      .add_option("IMAGE", arguments.images,
                  "image files, or directories; photos stored rotated (EXIF) are turned upright")
      ->required();
  predict.add_option("--adapter", arguments.asked.adapter,
                     "PEFT adapter on top of MODEL, or its run directory");
}

void add_output_options(CLI::App& predict, PredictFormat& format) {
  predict.add_option("--draw", format.draw_dir,
                     "directory for copies of the images, at most 1024 pixels wide or high, with "
                     "the objects drawn in; a terminal then shows no answers");
  predict
      .add_option("--format", format.format,
                  "jsonl: one line for each image; coco: one COCO document with scores")
      ->check(CLI::IsMember({"jsonl", "coco"}))
      ->capture_default_str();
  predict.add_option("--ids", format.ids,
                     "with --format coco: a COCO file of these images; writes a list of results "
                     "with its ids of images and categories, for pycocotools' loadRes");
  predict
      .add_option(
          "--min-score", format.min_score,
          "leave out objects below this score, the share of such boxes that are right: 0 to 1")
      ->check(finite_range(0, 1))
      ->capture_default_str();
  predict.add_option("--out", format.out,
                     "file, replaced once all answers are there; default: standard output");
}

void add_prompt_options(CLI::App& predict, Asked& asked) {
  // Also an empty text: the prompt's checks name it.
  const auto add_prompt = [&predict](const char* option, std::optional<std::string>& prompt,
                                     const char* help) {
    predict.add_option_function<std::string>(
        option, [&prompt](const std::string& text) { prompt = text; }, help);
  };
  add_prompt("--system", asked.texts.system_prompt,
             "system prompt; default: as stored with the checkpoint");
  add_prompt("--user", asked.texts.user_prompt,
             "user prompt; default: as stored with the checkpoint");
  predict
      .add_option("--max-new-tokens", asked.max_new_tokens,
                  "longest answer; default: as stored with the checkpoint")
      ->check(CLI::Range(1, 1 << 20));
  predict.add_option("--backend", asked.backend, "native or hf")
      ->check(CLI::IsMember({"native", "hf"}))
      ->capture_default_str();
}

}  // namespace

Command add_predict_command(CLI::App& app) {
  const auto [command, predict, arguments] = make_command(
      app, "predict", "find the objects in images with a trained model (docs/serve.md)",
      run_predict,
      {"output/run photos --draw drawn > found.jsonl",
       "base a.jpg b.jpg --adapter output/lora/checkpoint-200 --format coco --out found.json"});
  add_model_options(predict, arguments);
  add_output_options(predict, arguments.format);
  add_prompt_options(predict, arguments.asked);
  add_reading(predict, arguments);
  return command;
}

}  // namespace rematch
