// `rematch data` to-qwen, boxes and split: from records to other files.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <limits>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "model/checkpoint/model_dir.h"
#include "program/cli/command_set.h"
#include "program/cli/data_commands.h"
#include "program/cli/standard_output.h"
#include "program/cli/stock_arguments.h"
#include "tools/records/boxes.h"
#include "tools/records/split.h"
#include "tools/records/stock_export.h"

namespace rematch {
namespace {

/// Arguments of the commands that write one file from another.
struct FileArguments {
  std::string path, out;
  StockArguments stock;
};

void add_records(CLI::App& app, std::string& path) {
  app.add_option("JSONL", path, "records as training reads them")->required();
}

void add_files(CLI::App& app, FileArguments& arguments) {
  add_records(app, arguments.path);
  app.add_option("--out", arguments.out, "file to write")->required();
}

int run_to(const FileArguments& arguments) {
  InputFiles inputs;
  add_model(inputs, arguments.stock.model_dir);
  const int64_t num_records = write_stock_file(arguments.path, arguments.out,
                                               {.scale = scale_of(arguments.stock),
                                                .usual_text = arguments.stock.usual_text,
                                                .inputs = std::move(inputs)});
  print("wrote {}: {}\n", arguments.out, counted(num_records, "conversation"));
  return 0;
}

Command add_to(CLI::App& data) {
  const auto [command, app, arguments] = make_command(
      data, "to-qwen", "JSONL → conversations that trainers of stock checkpoints read", run_to, {});
  add_files(app, arguments);
  add_stock_options(app, arguments.stock, "the user's text of records without a \"prompt\"", false);
  add_examples(
      app,
      {"data/train.jsonl --out stock/train.jsonl",
       "data/val.jsonl --out stock/val.jsonl --scale pixels --model base"},
      "Writes JSON lines with \"messages\" (<image> and the user's text; the answer as a fenced "
      "list of \"bbox_2d\" and \"label\") and \"images\". from-qwen reads them back. Polygons "
      "have no such form: `rematch data boxes` turns them into boxes.");
  return command;
}

int run_boxes(const FileArguments& arguments) {
  const BoxesWritten written = write_boxes(arguments.path, arguments.out);
  print("wrote {}: {}, {}\n", arguments.out, counted(written.num_records, "record"),
        counted(written.num_polygons, "polygon as its box", "polygons as their boxes"));
  if (written.num_flat > 0) print("  {:6}  boxes without area\n", written.num_flat);
  return 0;
}

Command add_boxes(CLI::App& data) {
  const auto [command, app, arguments] = make_command(
      data, "boxes", "a copy whose polygons are their bounding boxes", run_boxes,
      {"data/train.jsonl --out boxes/train.jsonl", "data/val.jsonl --out boxes/val.jsonl"});
  add_files(app, arguments);
  return command;
}

struct SplitArguments {
  std::string path;
  SplitOptions options;
};

int run_split(const SplitArguments& arguments) {
  const SplitFiles files = write_split(arguments.path, arguments.options);
  for (const SplitPart* part : {&files.train, &files.val})
    print("{} {}: {}, {}\n", written_verb(part->replaces_earlier), part->path,
          counted(part->num_records, "record"), counted(part->num_images, "image"));
  if (files.num_repeats > 0)
    std::cout << wrapped(
        fmt::format("{} a picture of an earlier record; all records of a picture are in one file\n",
                    counted(files.num_repeats, "record shows", "records show")),
        2);
  print("next: rematch init MODEL {} --val {}\n", shell_word(files.train.path),
        shell_word(files.val.path));
  return 0;
}

Command add_split(CLI::App& data) {
  const auto [command, app, arguments] = make_command(
      data, "split", "two files of a JSONL, for training and validation, without a shared image",
      run_split, {});
  add_records(app, arguments.path);
  app.add_option("--val", arguments.options.val_share, "share of the validation records")
      ->capture_default_str();
  app.add_option("--seed", arguments.options.seed, "another seed draws other records")
      ->check(CLI::Range(0, std::numeric_limits<int>::max()))
      ->capture_default_str();
  app.add_option("--out", arguments.options.out_dir,
                 "directory for NAME-train.jsonl and NAME-val.jsonl; default: where NAME.jsonl "
                 "lies");
  add_examples(app, {"data/all.jsonl --val 0.1 --seed 0", "exported.jsonl --val 0.2 --out data"},
               "Records whose images have the same content stay together. The same images and seed "
               "give the same split, in whatever order the records are.");
  return command;
}

}  // namespace

std::vector<Command> add_stock_data_commands(CLI::App& data) {
  return {add_to(data), add_boxes(data), add_split(data)};
}

}  // namespace rematch
