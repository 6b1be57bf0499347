// `rematch data from-…`: from annotations of other programs to a JSONL.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "model/checkpoint/model_dir.h"
#include "program/cli/command_set.h"
#include "program/cli/data_commands.h"
#include "program/cli/data_import_options.h"
#include "program/cli/standard_output.h"
#include "tools/import/foreign.h"

namespace rematch {
namespace {

constexpr size_t kShownClasses = 20, kShownPlaces = 5;

using ClassCount = std::pair<std::string, int64_t>;

/// Most frequent first.
std::vector<ClassCount> ranked(const std::map<std::string, int64_t>& classes) {
  std::vector<ClassCount> rows(classes.begin(), classes.end());
  std::ranges::stable_sort(rows, std::greater(), &ClassCount::second);
  return rows;
}

/// The records to validate on: a split that was written, or one that lies there; "" for neither.
std::string held_out_records(const std::filesystem::path& directory) {
  for (const char* name : {"val.jsonl", "test.jsonl"}) {
    if (is_file(directory / name)) return (directory / name).string();
  }
  return "";
}

/// Says how to look at the records, and how to write a configuration for them; records of one split
/// are divided first.
void print_next(const WrittenSet& written) {
  const auto train = std::ranges::find_if(written.splits, [](const WrittenSplit& split) {
    return std::filesystem::path(split.path).stem() == "train";
  });
  const std::filesystem::path path =
      train == written.splits.end() ? written.splits.front().path : train->path;
  const std::string jsonl = shell_word(path.string());
  const std::string held_out = held_out_records(path.parent_path());
  print("next: rematch data show {} --out sheet.png\n", jsonl);
  if (held_out.empty() && written.num_records() < 2) {
    print("      rematch init MODEL {}\n", jsonl);
  } else if (held_out.empty()) {
    const std::string start = (path.parent_path() / path.stem()).string();
    print("      rematch data split {} --val 0.2\n      rematch init MODEL {} --val {}\n", jsonl,
          shell_word(start + "-train.jsonl"), shell_word(start + "-val.jsonl"));
  } else if (held_out != path.string()) {
    print("      rematch init MODEL {} --val {}\n", jsonl, shell_word(held_out));
  }
}

/// Says first what was left out, and where.
void print_losses(const WrittenSet& written) {
  const std::string summary = written.ledger.summary(written.num_records());
  if (summary.empty()) return;
  std::cout << wrapped(summary, 2) << "\n";
  const Strings places = written.ledger.places();
  for (size_t i = 0; i < std::min(places.size(), kShownPlaces); ++i)
    print("  {}\n", printable(places[i]));
  if (places.size() > kShownPlaces)
    print("  … and {} more reasons\n", places.size() - kShownPlaces);
  if (written.ledger.num_records_lost() > 0)
    std::cout << wrapped("  " + written.ledger.fix() + " (--strict makes it an error)", 2) << "\n";
}

}  // namespace

void print_classes(const std::map<std::string, int64_t>& classes) {
  const std::vector<ClassCount> rows = ranked(classes);
  std::string text = counted(std::ssize(rows), "class", "classes");
  for (size_t i = 0; i < std::min(rows.size(), kShownClasses); ++i)
    text += fmt::format("{} {} {}", i > 0 ? "," : ":", shown_label(rows[i].first), rows[i].second);
  if (rows.size() > kShownClasses)
    text += fmt::format(", and {} more", rows.size() - kShownClasses);
  std::cout << wrapped(text, 2) << "\n";
}

namespace {

/// Writes the records of a foreign data set and prints what became of it.
/// @return the exit code
int write_imported(ForeignSet set, const std::string& out_dir) {
  const WrittenSet written = write_records(std::move(set), out_dir);
  print_losses(written);
  for (const WrittenSplit& split : written.splits) {
    print("{} {}: {}, {}, {}\n", written_verb(split.replaces_earlier), split.path,
          counted(split.num_images, "image"), counted(split.num_boxes, "box", "boxes"),
          counted(split.num_polygons, "polygon"));
    print_classes(split.classes);
  }
  for (const auto& [note, count] : written.ledger.notes())
    print("  {:6}  {}\n", count, printable(note));
  print_next(written);
  return 0;
}

using ImportReader = ForeignSet (*)(const Strings&, const ImportOptions&);

/// A format as the command line knows it.
struct ImportFormat {
  const char *name, *summary, *source, *source_help;
  bool takes_several = false;  ///< sources
  ImportTraits traits;
  const char* split_help;
  Strings examples;
  ImportReader read;
};

constexpr const char* kFileSplit =
    "name of the split; default: train, val or test in the file's name, else its folder's";

const ImportFormat kImportFormats[] = {
    {.name = "from-coco",
     .summary = "COCO's instances → JSONL",
     .source = "ANNOTATIONS",
     .source_help = "instances_….json, one file for each split, or their directory",
     .takes_several = true,
     .traits = {.has_outlines = true, .has_box_forms = true},
     .split_help = kFileSplit,
     .examples = {"instances_train.json instances_val.json --images photos --out data",
                  "shapes.json --images . --out data --split train --polygons",
                  "instances_train.json --out data --prompt-classes --negatives 0.2"},
     .read = read_coco_files},
    {.name = "from-voc",
     .summary = "Pascal VOC → JSONL",
     .source = "DIR",
     .source_help = "directory with Annotations/ and JPEGImages/ (or such names), or with each XML "
                    "next to its image (labelImg), or with such folders train, valid and test",
     .traits = {.has_outlines = true},
     .split_help = "name of the split where the data set has none; default: train",
     .examples = {"VOCdevkit/VOC2012 --out data",
                  "labelled --images photos --out data --split val"},
     .read = read_voc_dir},
    {.name = "from-yolo",
     .summary = "a YOLO data set → JSONL",
     .source = "YAML",
     .source_help = "the data set's YAML (path, train, val, names), or a directory that holds it, "
                    "or one of images/ and labels/ with classes.txt or --names",
     .traits =
         {.has_outlines = true, .has_names = true, .has_box_forms = true, .has_label_files = true},
     .split_help = "name of the split of a directory without YAML; default: from its folders, else "
                   "train",
     .examples = {"coco8.yaml --out data", "folder --names cat,dog --out data",
                  "segments.yaml --out data --polygons"},
     .read = read_yolo_set},
    {.name = "from-labelme",
     .summary = "labelMe's JSON files → JSONL",
     .source = "DIR",
     .source_help = "directory with one JSON an image, or with such folders train, valid and test",
     .traits = {.has_outlines = true},
     .split_help = "name of the split where the data set has none; default: train",
     .examples = {"labelled --out data", "labelled --images photos --out data --polygons"},
     .read = read_labelme_dir},
    {.name = "from-csv",
     .summary = "a CSV with one box a row → JSONL",
     .source = "CSV",
     .source_help = "columns as in TensorFlow's tutorials (filename, xmin, …, class), OpenImages "
                    "and others; one file for each split",
     .takes_several = true,
     .traits = {.has_names = true, .has_box_forms = true},
     .split_help = kFileSplit,
     .examples = {"train_labels.csv --images photos --out data",
                  "validation-annotations-bbox.csv --names class-descriptions-boxable.csv --images "
                  "photos --out data"},
     .read = read_csv_files},
    {.name = "from-hf",
     .summary = "Hugging Face's metadata.jsonl → JSONL",
     .source = "METADATA",
     .source_help =
         "metadata.jsonl with file_name and objects (bbox, category), one for each split, "
         "or their directory",
     .takes_several = true,
     .traits = {.has_names = true, .has_box_forms = true},
     .split_help = kFileSplit,
     .examples =
         {"cppe5/train/metadata.jsonl --names Coverall,Face_Shield,Gloves,Goggles,Mask --out data",
          "imagefolder --out data"},
     .read = read_hf_files},
    {.name = "from-swift",
     .summary = "ms-swift's grounding records → JSONL",
     .source = "JSONL",
     .source_help = "one file for each split",
     .takes_several = true,
     .traits = {.has_outlines = true, .has_box_forms = true, .has_conversations = true},
     .split_help = kFileSplit,
     .examples = {"swift/train.jsonl swift/val.jsonl --out data",
                  "grounding.jsonl --images photos --out data --split train"},
     .read = read_chat_files},
    {.name = "from-qwen",
     .summary = "conversations with boxes in the text of the answer → JSONL",
     .source = "FILE",
     .source_help = "JSON lines or a JSON array of \"messages\" or \"conversations\"; one file for "
                    "each split",
     .takes_several = true,
     .traits = {.has_outlines = true, .has_box_forms = true, .has_conversations = true},
     .split_help = kFileSplit,
     .examples = {"train.json val.json --images photos --out data",
                  "refcoco.json --label-from-prompt \"Locate {} in\" --out data",
                  "grounding.jsonl --scale pixels --out data --split train"},
     .read = read_chat_files},
};

Command add_import(CLI::App& data, const ImportFormat& format) {
  CLI::App& app = add_subcommand(data, format.name, format.summary, format.examples);
  const auto arguments = std::make_shared<ImportArguments>();
  CLI::Option* sources =
      app.add_option(format.source, arguments->sources, format.source_help)->required();
  if (!format.takes_several) sources->expected(1);
  add_import_options(app, *arguments, format.traits);
  app.add_option("--split", arguments->options.split, format.split_help);
  return {&app, [arguments, &format] {
            ForeignSet set =
                format.read(arguments->sources, finish_import_options(*arguments, format.traits));
            add_model(set.also_read, arguments->stock.model_dir);
            return write_imported(std::move(set), arguments->out_dir);
          }};
}

}  // namespace

std::vector<Command> add_import_commands(CLI::App& data) {
  std::vector<Command> commands;
  for (const ImportFormat& format : kImportFormats) commands.push_back(add_import(data, format));
  return commands;
}

}  // namespace rematch
