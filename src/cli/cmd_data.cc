// `rematch data …`: from other programs' annotations to a JSONL, and a look at it.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/file.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "cli/command_set.h"
#include "cli/sample_lengths.h"
#include "cli/standard_output.h"
#include "data/dataset.h"
#include "draw/encode.h"
#include "draw/panel.h"
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
  std::cout << counted(static_cast<int64_t>(rows.size()), "class", "classes")
            << (rows.empty() ? "" : ":");
  for (size_t i = 0; i < std::min(rows.size(), kShownClasses); ++i)
    std::cout << fmt::format("{} {} {}", i > 0 ? "," : "", printable(rows[i].first),
                             rows[i].second);
  std::cout << (rows.size() > kShownClasses
                    ? fmt::format(", and {} more\n", rows.size() - kShownClasses)
                    : "\n");
}

int write_imported(const ForeignSet& set, const std::string& out_dir) {
  const WrittenSet written = write_records(set, out_dir);
  for (const WrittenSplit& split : written.splits) {
    std::cout << fmt::format(
        "wrote {}: {}, {}, {}\n", split.path, counted(split.num_images, "image"),
        counted(split.num_boxes, "box", "boxes"), counted(split.num_polygons, "polygon"));
    print_classes(split.classes);
  }
  for (const auto& [note, count] : written.notes)
    std::cout << fmt::format("  {:6}  {}\n", count, note);
  for (const std::string& example : written.examples)
    std::cout << fmt::format("          {}\n", printable(example));
  std::cout << fmt::format("next: rematch data check {0}; rematch data show {0} --out sheet.png\n",
                           shell_word(written.splits.front().path));
  return 0;
}

/// Arguments of the four from-… commands.
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
     .source_help = "instances_….json; one file for each split",
     .takes_several = true,
     .has_outlines = true,
     .split_help = "name of the split; default: from the file's name",
     .examples =
         "  rematch data from-coco instances_train.json instances_val.json --images photos --out "
         "data\n"
         "  rematch data from-coco shapes.json --images . --out data --split train --polygons",
     .read = [](const ImportArguments& a) { return read_coco_files(a.sources, a.options); }},
    {.name = "from-voc",
     .summary = "Pascal VOC → JSONL",
     .source = "DIR",
     .source_help = "directory with Annotations/ and JPEGImages/",
     .split_help = "name of the split where ImageSets/Main has no lists; default: train",
     .examples = "  rematch data from-voc VOCdevkit/VOC2012 --out data\n"
                 "  rematch data from-voc labelled --images photos --out data --split val",
     .read = [](const ImportArguments& a) { return read_voc_dir(a.sources.front(), a.options); }},
    {.name = "from-yolo",
     .summary = "a YOLO data set → JSONL",
     .source = "YAML",
     .source_help = "the data set's YAML (path, train, val, names)",
     .has_outlines = true,
     .split_help = nullptr,
     .examples = "  rematch data from-yolo coco8.yaml --out data\n  rematch data from-yolo "
                 "segments.yaml --out data --polygons",
     .read = [](const ImportArguments& a) { return read_yolo_set(a.sources.front(), a.options); }},
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
  app->footer(fmt::format("Examples:\n{}", format.examples));
  return {app, [arguments, &format] {
            return write_imported(format.read(*arguments), arguments->out_dir);
          }};
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
int write_fixed(const DataCheckArguments& arguments, const std::vector<std::string>& added_tokens) {
  for (const auto& [what, count] : write_repaired(arguments.path, arguments.fixed, added_tokens))
    std::cout << fmt::format("  {:6}  {}\n", count, what);
  std::cout << fmt::format("wrote {}\n", arguments.fixed);
  if (!arguments.model_dir.empty()) print_lengths(arguments.fixed, arguments.model_dir);
  return 0;
}

int run_data_check(const DataCheckArguments& arguments) {
  if (!arguments.fixed.empty()) {
    InputFiles{arguments.path}.refuse(arguments.fixed);
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
      "width {} px, height {} px, objects an image {} (least … median … most)\n",
      spread(review.width_px), spread(review.height_px), spread(review.objects_per_image));
  print_classes(review.classes);
  print_findings(review, arguments.path, arguments.all ? SIZE_MAX : kShownFindings);
  bool usable = review.num_records > 0;
  for (const FindingKind kind : {FindingKind::kRefused, FindingKind::kUnreadableImage,
                                 FindingKind::kWrongSize, FindingKind::kInverted})
    usable = usable && review.of(kind).empty();
  if (!arguments.fixed.empty()) return write_fixed(arguments, added_tokens);
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

struct ShowArguments {
  std::string path, out;
  int count = 12, columns = 4, panel_px = 360;
};

int run_data_show(const ShowArguments& arguments) {
  const Dataset dataset =
      Dataset::load(arguments.path, {.require_single_image = false, .check_image_files = false});
  InputFiles inputs{arguments.path};
  for (const Sample& sample : dataset.samples()) {
    for (const std::string& image : sample.image_paths) inputs.add(image);
  }
  OutputFile file(arguments.out, inputs);
  const auto count = std::min<int64_t>(arguments.count, dataset.size());
  std::vector<std::pair<std::string, Canvas>> panels;
  for (int64_t i = 0; i < count; ++i) {
    const Sample& sample = dataset.samples()[static_cast<size_t>(i * dataset.size() / count)];
    std::vector<DrawnObject> objects;
    for (const SceneObject& object : sample.objects)
      objects.push_back({object.geometry, object.desc, kTruthColor});
    const std::string& path = sample.image_paths.front();
    const std::string caption =
        fmt::format("line {}: {}, {} x {}", sample.sample_id + 1, path.substr(path.rfind('/') + 1),
                    sample.width_px, sample.height_px);
    try {
      panels.emplace_back(caption, scene_panel(load_image(path), objects, arguments.panel_px));
    } catch (const UserError& error) {
      panels.emplace_back(caption, blank_panel(error.problems().front().error, arguments.panel_px));
    }
  }
  file.write(encode_png(sheet_of(panels, arguments.columns).image()));
  file.commit();
  std::cout << fmt::format("wrote {}: {} of {} records\n", arguments.out, count, dataset.size());
  return 0;
}

Command add_show(CLI::App& data) {
  CLI::App* app =
      data.add_subcommand("show", "a sheet of images with their labelled boxes and polygons");
  const auto arguments = std::make_shared<ShowArguments>();
  app->add_option("JSONL", arguments->path, "records as training reads them")->required();
  app->add_option("--out", arguments->out, "PNG file to write")->required();
  app->add_option("--count", arguments->count, "images, evenly spaced over the file")
      ->capture_default_str()
      ->check(CLI::Range(1, 400));
  app->add_option("--columns", arguments->columns, "images in a row")
      ->capture_default_str()
      ->check(CLI::Range(1, 20));
  app->add_option("--size", arguments->panel_px, "longer side of an image on the sheet, in pixels")
      ->capture_default_str()
      ->check(CLI::Range(64, 2000));
  app->footer(
      "Examples:\n  rematch data show data/train.jsonl --out sheet.png\n  rematch data show "
      "data/val.jsonl --out big.png --count 4 "
      "--columns 2 --size 900");
  return {app, [arguments] { return run_data_show(*arguments); }};
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
  commands.push_back(add_check(*data));
  commands.push_back(add_show(*data));
  return commands;
}

}  // namespace rematch
