// `rematch data` from-qwen, to-qwen, boxes and split: between records and the files of stock
// trainers.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "checkpoint/model_dir.h"
#include "cli/command_set.h"
#include "cli/data_commands.h"
#include "estep/answer/answer_format.h"
#include "import/stock_files.h"
#include "records/boxes.h"
#include "records/split.h"
#include "records/stock_export.h"
#include "vision/patches.h"

namespace rematch {
namespace {

constexpr const char* kScaleHelp =
    "unit of the coordinates. relative: 0..1000 of the image's side (Qwen3-VL, Qwen3.5). pixels: "
    "pixels of the resized image, which is what Qwen2.5-VL sees and answers in: both sides are "
    "rounded to multiples of 28 and the area is kept within 3136 and 12845056 pixels, unless "
    "--model says otherwise. file-pixels: pixels of the image file";

/// Options that from-qwen and to-qwen share.
struct StockArguments {
  std::string scale = "relative", model_dir;
  /// what training asks in this format when `custom.user_prompt` says nothing
  std::string usual_text = answer_formats().find("qwen_json").built_in_prompt({}).user;
};

void add_stock_options(CLI::App& app, StockArguments& arguments, const char* prompt_help) {
  app.add_option("--scale", arguments.scale, kScaleHelp)
      ->capture_default_str()
      ->check(CLI::IsMember({"relative", "pixels", "file-pixels"}));
  app.add_option("--model", arguments.model_dir,
                 "model directory whose image processor resizes, for --scale pixels");
  app.add_option("--prompt", arguments.usual_text, prompt_help)->capture_default_str();
}

StockScale scale_of(const StockArguments& arguments) {
  StockScale scale;
  if (arguments.scale == "pixels") scale.unit = StockScale::Unit::kResizedPixels;
  if (arguments.scale == "file-pixels") scale.unit = StockScale::Unit::kFilePixels;
  if (arguments.model_dir.empty()) return scale;
  const PatchOptions patches = PatchOptions::from_model_dir(arguments.model_dir);
  if (scale.unit == StockScale::Unit::kResizedPixels && !patches.do_resize)
    scale.unit = StockScale::Unit::kFilePixels;
  scale.resize = {.side_multiple_px = patches.side_multiple_px(),
                  .min_pixels = patches.min_pixels,
                  .max_pixels = patches.max_pixels};
  return scale;
}

Command add_from(CLI::App& data) {
  CLI::App* app = data.add_subcommand("from-qwen",
                                      "conversations with boxes in the text of the answer → JSONL");
  struct Arguments {
    std::vector<std::string> sources;
    std::string out_dir;
    ImportOptions files;
    StockArguments stock;
  };
  const auto arguments = std::make_shared<Arguments>();
  app->add_option("FILE", arguments->sources,
                  "JSON lines or a JSON array of \"messages\" or \"conversations\"; one file for "
                  "each split")
      ->required();
  app->add_option("--images", arguments->files.images_dir,
                  "directory of the images; default: where the file lies");
  app->add_option("--out", arguments->out_dir, "directory for SPLIT.jsonl")->required();
  app->add_option("--split", arguments->files.split,
                  "name of the split; default: from the file's name");
  app->add_flag("--upright", arguments->files.upright,
                "write turned copies of photos that are stored rotated (EXIF) and annotated as "
                "viewers show them; default: leave them out");
  add_stock_options(*app, arguments->stock,
                    "a user's text that records do not repeat as their \"prompt\", because "
                    "custom.user_prompt says it");
  app->footer(
      "Reads answers such as [{\"bbox_2d\": [10, 20, 300, 400], \"label\": \"cat\"}], fenced with "
      "```json or bare, and one such object alone. The user's text without <image> becomes the "
      "record's \"prompt\". What cannot be read is left out, counted and named.\n"
      "Examples:\n"
      "  rematch data from-qwen train.json val.json --images photos --out data\n"
      "  rematch data from-qwen grounding.jsonl --scale pixels --out data --split train");
  return {app, [arguments] {
            ForeignSet set = read_stock_files(
                arguments->sources, {.files = arguments->files,
                                     .scale = scale_of(arguments->stock),
                                     .usual_text = python_strip(arguments->stock.usual_text)});
            add_model(set.also_read, arguments->stock.model_dir);
            return write_imported(set, arguments->out_dir, arguments->files);
          }};
}

/// Arguments of the commands that write one file from another.
struct FileArguments {
  std::string path, out;
  StockArguments stock;
};

CLI::App* add_file_command(CLI::App& data, const char* name, const char* summary,
                           FileArguments& arguments) {
  CLI::App* app = data.add_subcommand(name, summary);
  app->add_option("JSONL", arguments.path, "records as training reads them")->required();
  app->add_option("--out", arguments.out, "file to write")->required();
  return app;
}

Command add_to(CLI::App& data) {
  const auto arguments = std::make_shared<FileArguments>();
  CLI::App* app = add_file_command(
      data, "to-qwen", "JSONL → conversations that trainers of stock checkpoints read", *arguments);
  add_stock_options(*app, arguments->stock, "the user's text of records without a \"prompt\"");
  app->footer(
      "Writes JSON lines with \"messages\" (<image> and the user's text; the answer as a fenced "
      "list of \"bbox_2d\" and \"label\") and \"images\". from-qwen reads them back. Polygons have "
      "no such form: `rematch data boxes` turns them into boxes.\n"
      "Examples:\n"
      "  rematch data to-qwen data/train.jsonl --out stock/train.jsonl\n"
      "  rematch data to-qwen data/val.jsonl --out stock/val.jsonl --scale pixels --model base");
  return {app, [arguments] {
            InputFiles inputs;
            add_model(inputs, arguments->stock.model_dir);
            const int64_t num_records = write_stock_file(arguments->path, arguments->out,
                                                         {.scale = scale_of(arguments->stock),
                                                          .usual_text = arguments->stock.usual_text,
                                                          .inputs = std::move(inputs)});
            std::cout << fmt::format("wrote {}: {}\n", arguments->out,
                                     counted(num_records, "conversation"));
            return 0;
          }};
}

Command add_boxes(CLI::App& data) {
  const auto arguments = std::make_shared<FileArguments>();
  CLI::App* app =
      add_file_command(data, "boxes", "a copy whose polygons are their bounding boxes", *arguments);
  app->footer(
      "Examples:\n  rematch data boxes data/train.jsonl --out boxes/train.jsonl\n"
      "  rematch data boxes data/val.jsonl --out boxes/val.jsonl");
  return {app, [arguments] {
            const BoxesWritten written = write_boxes(arguments->path, arguments->out);
            std::cout << fmt::format("wrote {}: {}, {} as {}\n", arguments->out,
                                     counted(written.num_records, "record"),
                                     counted(written.num_polygons, "polygon"),
                                     written.num_polygons == 1 ? "its box" : "their boxes");
            if (written.num_flat > 0)
              std::cout << fmt::format("  {:6}  boxes without area\n", written.num_flat);
            return 0;
          }};
}

Command add_split(CLI::App& data) {
  struct Arguments {
    std::string path;
    SplitOptions options;
  };
  const auto arguments = std::make_shared<Arguments>();
  CLI::App* app = data.add_subcommand(
      "split", "two files of a JSONL, for training and validation, without a shared image");
  app->add_option("JSONL", arguments->path, "records as training reads them")->required();
  app->add_option("--val", arguments->options.val_share, "share of the validation records")
      ->capture_default_str();
  app->add_option("--seed", arguments->options.seed, "another seed draws other records")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->capture_default_str();
  app->add_option("--out", arguments->options.out_dir,
                  "directory for NAME-train.jsonl and NAME-val.jsonl; default: where NAME.jsonl "
                  "lies");
  app->footer(
      "Records whose images have the same content stay together. The same images and seed give "
      "the same split, in whatever order the records are.\n"
      "Examples:\n  rematch data split data/all.jsonl --val 0.1 --seed 0\n"
      "  rematch data split exported.jsonl --val 0.2 --out data");
  return {app, [arguments] {
            const SplitFiles files = write_split(arguments->path, arguments->options);
            for (const SplitPart* part : {&files.train, &files.val}) {
              std::cout << fmt::format("{} {}: {}, {}\n", written_verb(part->replaces_earlier),
                                       part->path, counted(part->num_records, "record"),
                                       counted(part->num_images, "image"));
            }
            std::cout << fmt::format("next: rematch init MODEL {} --val {}\n",
                                     shell_word(files.train.path), shell_word(files.val.path));
            return 0;
          }};
}

}  // namespace

std::vector<Command> add_stock_data_commands(CLI::App& data) {
  return {add_from(data), add_to(data), add_boxes(data), add_split(data)};
}

}  // namespace rematch
