// `rematch data …`: from other programs' annotations to a JSONL, and a look at it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "checkpoint/model_dir.h"
#include "cli/cmd_data_show.h"
#include "cli/command_set.h"
#include "cli/data_commands.h"
#include "cli/sample_lengths.h"
#include "cli/standard_output.h"
#include "data/dataset.h"
#include "import/foreign.h"
#include "review/review.h"
#include "text/tokenizer.h"

namespace rematch {
namespace {

constexpr size_t kShownClasses = 20, kShownFindings = 5;

using ClassCount = std::pair<std::string, int64_t>;

/// Most frequent first.
std::vector<ClassCount> ranked(const std::map<std::string, int64_t>& classes) {
  std::vector<ClassCount> rows(classes.begin(), classes.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return rows;
}

void print_classes(const std::map<std::string, int64_t>& classes) {
  const std::vector<ClassCount> rows = ranked(classes);
  std::string text = counted(static_cast<int64_t>(rows.size()), "class", "classes");
  for (size_t i = 0; i < std::min(rows.size(), kShownClasses); ++i)
    text += fmt::format("{} {} {}", i > 0 ? "," : ":", shown_label(rows[i].first), rows[i].second);
  if (rows.size() > kShownClasses)
    text += fmt::format(", and {} more", rows.size() - kShownClasses);
  std::cout << wrapped(text, 2) << "\n";
}

/// Says how to look at the records, and how to write a configuration for them. A name such as
/// "result" says neither train nor val: such a file is divided first.
void print_next(const WrittenSet& written) {
  const auto path_of = [&](const std::string& name) -> std::string {
    for (const WrittenSplit& split : written.splits) {
      if (std::filesystem::path(split.path).stem() == name) return shell_word(split.path);
    }
    return "";
  };
  const std::string train = path_of("train"), val = path_of("val");
  const std::string first = shell_word(written.splits.front().path);
  std::cout << fmt::format("next: rematch data show {} --out sheet.png\n",
                           train.empty() ? first : train);
  const std::string name = std::filesystem::path(written.splits.front().path).stem().string();
  if (!train.empty()) {
    std::cout << fmt::format("      rematch init MODEL {}{}\n", train,
                             val.empty() ? "" : " --val " + val);
  } else if (written.splits.size() == 1 && find_split_word(name).empty()) {
    std::cout << fmt::format(
        "      rematch data split {} --val 0.1\n"
        "      (one file without a split; --split train names it)\n",
        first);
  }
}

}  // namespace

int write_imported(const ForeignSet& set, const std::string& out_dir,
                   const ImportOptions& options) {
  const WrittenSet written = write_records(set, out_dir, options);
  for (const WrittenSplit& split : written.splits) {
    std::cout << fmt::format("{} {}: {}, {}, {}\n", written_verb(split.replaces_earlier),
                             split.path, counted(split.num_images, "image"),
                             counted(split.num_boxes, "box", "boxes"),
                             counted(split.num_polygons, "polygon"));
    print_classes(split.classes);
  }
  for (const auto& [note, count] : written.notes)
    std::cout << fmt::format("  {:6}  {}\n", count, note);
  for (const std::string& example : written.examples)
    std::cout << fmt::format("          {}\n", printable(example));
  print_next(written);
  return 0;
}

namespace {

/// Arguments of the from-… commands.
struct ImportArguments {
  std::vector<std::string> sources;
  std::string out_dir;
  ImportOptions options;
};

using ImportReader = std::function<ForeignSet(const ImportArguments&)>;

/// A format as the command line knows it.
struct ImportFormat {
  const char *name, *summary, *source, *source_help;
  bool takes_several = false;  ///< sources
  bool has_outlines = false;
  const char* split_help;  ///< null: the data set names its splits
  const char* examples;
  ImportReader read;
};

const ImportFormat kImportFormats[] = {
    {.name = "from-coco",
     .summary = "COCO's instances → JSONL",
     .source = "ANNOTATIONS",
     .source_help = "instances_….json, one file for each split, or their directory",
     .takes_several = true,
     .has_outlines = true,
     .split_help =
         "name of the split; default: train, val or test in the file's name, else its folder's",
     .examples =
         "  rematch data from-coco instances_train.json instances_val.json --images photos --out "
         "data\n"
         "  rematch data from-coco shapes.json --images . --out data --split train --polygons",
     .read = [](const ImportArguments& a) { return read_coco_files(a.sources, a.options); }},
    {.name = "from-voc",
     .summary = "Pascal VOC → JSONL",
     .source = "DIR",
     .source_help = "directory with Annotations/ and JPEGImages/, or with each XML next to its "
                    "image (labelImg), or with such folders train, valid and test",
     .split_help = "name of the split where the data set has none; default: train",
     .examples = "  rematch data from-voc VOCdevkit/VOC2012 --out data\n"
                 "  rematch data from-voc labelled --images photos --out data --split val",
     .read = [](const ImportArguments& a) { return read_voc_dir(a.sources.front(), a.options); }},
    {.name = "from-yolo",
     .summary = "a YOLO data set → JSONL",
     .source = "YAML",
     .source_help = "the data set's YAML (path, train, val, names), or the directory that holds it",
     .has_outlines = true,
     .split_help = nullptr,
     .examples = "  rematch data from-yolo coco8.yaml --out data\n  rematch data from-yolo "
                 "segments.yaml --out data --polygons",
     .read = [](const ImportArguments& a) { return read_yolo_set(a.sources.front(), a.options); }},
    {.name = "from-labelme",
     .summary = "labelMe's JSON files → JSONL",
     .source = "DIR",
     .source_help = "directory with one JSON an image, or with such folders train, valid and test",
     .has_outlines = true,
     .split_help = "name of the split where the data set has none; default: train",
     .examples = "  rematch data from-labelme labelled --out data\n"
                 "  rematch data from-labelme labelled --images photos --out data --polygons",
     .read =
         [](const ImportArguments& a) { return read_labelme_dir(a.sources.front(), a.options); }},
    {.name = "from-swift",
     .summary = "ms-swift's grounding records → JSONL",
     .source = "JSONL",
     .source_help = "one file for each split",
     .takes_several = true,
     .split_help = "name of the split; default: from the file's name",
     .examples =
         "  rematch data from-swift swift/train.jsonl swift/val.jsonl --out data\n"
         "  rematch data from-swift grounding.jsonl --images photos --out data --split train",
     .read = [](const ImportArguments& a) { return read_swift_files(a.sources, a.options); }},
};

Command add_import(CLI::App& data, const ImportFormat& format) {
  CLI::App* app = data.add_subcommand(format.name, format.summary);
  const auto arguments = std::make_shared<ImportArguments>();
  CLI::Option* sources =
      app->add_option(format.source, arguments->sources, format.source_help)->required();
  if (!format.takes_several) sources->expected(1);
  app->add_option(
      "--images", arguments->options.images_dir,
      "directory of the images; default: where the format puts them, next to the annotations");
  app->add_option("--out", arguments->out_dir, "directory for SPLIT.jsonl")->required();
  if (format.split_help != nullptr)
    app->add_option("--split", arguments->options.split, format.split_help);
  if (format.has_outlines) {
    app->add_flag("--polygons", arguments->options.polygons,
                  "outlines of one ring become \"poly\"; default: boxes only");
  }
  app->add_flag("--upright", arguments->options.upright,
                "write turned copies of photos that are stored rotated (EXIF) and annotated as "
                "viewers show them; default: leave them out");
  app->footer(fmt::format("Examples:\n{}", format.examples));
  return {app, [arguments, &format] {
            if (format.takes_several)
              check_one_file_per_split(arguments->sources, arguments->options);
            return write_imported(format.read(*arguments), arguments->out_dir, arguments->options);
          }};
}

void print_similar_classes(const Review& review) {
  for (const std::vector<std::string>& group : review.similar_classes()) {
    std::string names;
    for (const std::string& desc : group)
      names += fmt::format("{} \"{}\" ({})", names.empty() ? "" : ",", shown_label(desc),
                           review.classes.at(desc));
    std::cout << fmt::format("classes that differ in case, width or spaces only:{}\n", names);
  }
}

void print_findings(const Review& review, const std::string& path, size_t most) {
  for (size_t k = 0; k < kNumFindingKinds; ++k) {
    const std::vector<Finding>& findings = review.findings[k];
    if (findings.empty()) continue;
    std::cout << fmt::format("{}: {}\n", finding_name(static_cast<FindingKind>(k)),
                             findings.size());
    for (size_t i = 0; i < std::min(findings.size(), most); ++i)
      std::cout << fmt::format("  line {}: {}\n", findings[i].line, printable(findings[i].what));
    if (findings.size() > most)
      std::cout << fmt::format("  … and {} more (--all lists them)\n", findings.size() - most);
  }
  if (review.looks_like_pixels) {
    std::cout << fmt::format(
        "coordinates look like pixels: none exceeds its image's side, but bins go to 999 on every "
        "side\n"
        "  bin = min(999, round(1000 * pixel / side)): `rematch data check {} --fix OUT` converts "
        "them all\n",
        shell_word(path));
  }
}

/// Contents of a model's added tokens; none without a model.
std::vector<std::string> added_tokens_of(const std::string& model_dir) {
  std::vector<std::string> texts;
  if (model_dir.empty()) return texts;
  for (const AddedToken& token : Tokenizer::load(model_dir)->added_tokens())
    texts.push_back(token.content);
  return texts;
}

/// Lengths as a model sees them, of a file that training can use.
void print_lengths(const std::string& path, const std::string& model_dir) {
  const Dataset dataset =
      Dataset::load(path, {.require_single_image = false, .check_image_files = false});
  const SampleLengths lengths = measure_lengths(dataset, model_dir);
  std::cout << fmt::format(
      "tokens with {}: prompts up to {} (images included), answers {} … {} (median … most), "
      "together up to {}\n",
      model_dir, lengths.longest_prompt, lengths.median_answer, lengths.longest_answer,
      lengths.longest);
}

struct DataCheckArguments {
  std::string path, fixed, model_dir;
  bool decode = false, all = false;
};

/// Writes the repaired copy and tells what changed.
int write_fixed(const DataCheckArguments& arguments, const std::vector<std::string>& added_tokens,
                const InputFiles& inputs) {
  for (const auto& [what, count] :
       write_repaired(arguments.path, arguments.fixed, arguments.decode, added_tokens, inputs))
    std::cout << fmt::format("  {:6}  {}\n", count, what);
  std::cout << fmt::format("wrote {}\n", arguments.fixed);
  if (!arguments.model_dir.empty()) print_lengths(arguments.fixed, arguments.model_dir);
  return 0;
}

int run_data_check(const DataCheckArguments& arguments) {
  InputFiles inputs{arguments.path};
  add_model(inputs, arguments.model_dir);
  if (!arguments.fixed.empty()) {
    inputs.refuse(arguments.fixed);
    survive_closed_pipe();  // the copy is written last
  }
  const std::vector<std::string> added_tokens = added_tokens_of(arguments.model_dir);
  const Review review = review_jsonl(arguments.path, arguments.decode, added_tokens);
  const auto spread = [](const Spread& spread) {
    return fmt::format("{} … {} … {}", spread.least, spread.median, spread.most);
  };
  std::cout << fmt::format(
      "{}: {}, {} ({}, {}), {}\n", arguments.path, counted(review.num_records, "record"),
      counted(review.num_objects, "object"), counted(review.num_boxes, "box", "boxes"),
      counted(review.num_polygons, "polygon"), counted(review.num_empty_scenes, "empty scene"));
  std::cout << fmt::format(
      "width {} px, height {} px,\n  objects an image {} (least … median … most)\n",
      spread(review.width_px), spread(review.height_px), spread(review.objects_per_image));
  print_classes(review.classes);
  print_similar_classes(review);
  print_findings(review, arguments.path, arguments.all ? SIZE_MAX : kShownFindings);
  if (review.num_outside > 0)
    std::cout << fmt::format(
        "{} outside the directory of the JSONL by absolute paths or links:\n"
        "  a copy of that directory lacks {}\n",
        review.num_outside == 1 ? "1 image lies" : fmt::format("{} images lie", review.num_outside),
        review.num_outside == 1 ? "it" : "them");
  bool usable = review.num_records > 0;
  for (const FindingKind kind : {FindingKind::kRefused, FindingKind::kUnreadableImage,
                                 FindingKind::kWrongSize, FindingKind::kInverted})
    usable = usable && review.of(kind).empty();
  if (!arguments.fixed.empty()) return write_fixed(arguments, added_tokens, inputs);
  if (usable && !arguments.model_dir.empty()) print_lengths(arguments.path, arguments.model_dir);
  if (usable) {
    std::cout << "training can use it\n";
  } else if (review.num_records == 0) {
    std::cout << "training refuses it: it has no records\n";
  } else {
    std::cout << fmt::format(
        "training refuses it as it is: `rematch data check {} --fix OUT` writes a copy with what "
        "can be repaired\n",
        shell_word(arguments.path));
  }
  return usable ? 0 : exit_code(ErrorKind::kData);
}

Command add_check(CLI::App& data) {
  CLI::App* app = data.add_subcommand(
      "check", "counts, sizes, classes and everything odd about a JSONL, with line numbers");
  const auto arguments = std::make_shared<DataCheckArguments>();
  app->add_option("JSONL", arguments->path, "records as training reads them")->required();
  app->add_option("--fix", arguments->fixed, "write a repaired copy here");
  app->add_option("--model", arguments->model_dir,
                  "model directory: lengths in tokens (of the copy with --fix), as its tokenizer "
                  "and image processor give them");
  app->add_flag("--decode", arguments->decode, "decode every image, not only its header");
  app->add_flag("--all", arguments->all, "list every finding; default: five of a kind");
  app->footer(
      "Examples:\n  rematch data check data/train.jsonl\n  rematch data check raw.jsonl --fix "
      "data/train.jsonl\n  rematch data check "
      "data/train.jsonl --model base\nExit code 3 when training "
      "would refuse the file.");
  return {app, [arguments] { return run_data_check(*arguments); }};
}

}  // namespace

std::vector<Command> add_data_commands(CLI::App& app) {
  CLI::App* data = app.add_subcommand(
      "data", "import annotations of other programs; check and show a JSONL (docs/data.md)");
  data->require_subcommand(1);
  data->footer(
      "Examples:\n  rematch data from-coco instances_train.json --images photos --out data\n  "
      "rematch data check data/train.jsonl");
  std::vector<Command> commands;
  for (const ImportFormat& format : kImportFormats) commands.push_back(add_import(*data, format));
  for (Command& command : add_stock_data_commands(*data)) commands.push_back(std::move(command));
  commands.push_back(add_check(*data));
  commands.push_back(add_data_show(*data));
  return commands;
}

}  // namespace rematch
