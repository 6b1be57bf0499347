// `rematch data check`: everything odd about a JSONL, and a repaired copy.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/terminal_text.h"
#include "learn/data/dataset.h"
#include "model/checkpoint/model_dir.h"
#include "model/text/tokenizer.h"
#include "program/cli/check_advice.h"
#include "program/cli/command_set.h"
#include "program/cli/data_commands.h"
#include "program/cli/sample_lengths.h"
#include "program/cli/standard_output.h"
#include "learn/data/records_path.h"
#include "tools/review/review.h"

namespace rematch {
namespace {

constexpr size_t kShownFindings = 5;

void print_similar_classes(const Review& review) {
  for (const std::vector<std::string>& group : review.similar_classes()) {
    std::string names;
    for (const std::string& desc : group)
      names += fmt::format("{} \"{}\" ({})", names.empty() ? "" : ",", shown_label(desc),
                           review.classes.at(desc));
    std::cout << fmt::format("classes that differ in case, width or spaces only:{}\n", names);
  }
}

void print_findings(const Review& review, size_t most) {
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
}

void print_turned(const Review& review) {
  if (review.num_turned == 0) return;
  std::cout << fmt::format(
      "{} stored turned (EXIF): training turns {} as viewers do\n",
      review.num_turned == 1 ? "1 photo is" : fmt::format("{} photos are", review.num_turned),
      review.num_turned == 1 ? "it" : "them");
  if (review.num_hidden_turns > 0)
    std::cout << fmt::format(
        "  {} square, mirrored or turned by half, so no size shows on which pixels the boxes were "
        "drawn:\n  look with `rematch data show`\n",
        review.num_hidden_turns == 1 ? "1 of them is"
                                     : fmt::format("{} of them are", review.num_hidden_turns));
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
  std::string path, fixed, model_dir, box_form, unit;
  bool decode = false, all = false, strict = false;
};

RepairOptions repair_options(const DataCheckArguments& arguments,
                             const std::vector<std::string>& added_tokens,
                             const InputFiles& inputs) {
  RepairOptions options{.decode = arguments.decode, .added_tokens = added_tokens, .others = inputs};
  options.boxes = find_box_form(arguments.box_form);
  if (arguments.unit == "bins") options.unit = CoordinateUnit::kBins;
  if (arguments.unit == "pixels") options.unit = CoordinateUnit::kPixels;
  if (arguments.unit == "normalized") options.unit = CoordinateUnit::kShares;
  return options;
}

void print_counts(const Review& review, const std::string& path) {
  const auto spread = [](const Spread& spread) {
    return fmt::format("{} … {} … {}", spread.least, spread.median, spread.most);
  };
  std::cout << fmt::format(
      "{}: {}, {} ({}, {}), {}\n", path, counted(review.num_records, "record"),
      counted(review.num_objects, "object"), counted(review.num_boxes, "box", "boxes"),
      counted(review.num_polygons, "polygon"), counted(review.num_empty_scenes, "empty scene"));
  std::cout << fmt::format(
      "width {} px, height {} px,\n  objects an image {} (least … median … most)\n",
      spread(review.width_px), spread(review.height_px), spread(review.objects_per_image));
  print_classes(review.classes);
}

/// The first line of a repair: how much is lost.
void print_loss(const RepairedRecords& repaired) {
  if (repaired.num_lost == 0) return;
  const int64_t num_all = repaired.num_lost + repaired.num_records;
  std::cout << fmt::format("left out {} of {}{}\n", repaired.num_lost, counted(num_all, "record"),
                           2 * repaired.num_lost > num_all ? ": most of the file" : "");
}

/// Tells what the repaired copy changes.
void print_repairs(const RepairedRecords& repaired, const Review& review,
                   const DataCheckArguments& arguments) {
  for (const auto& [what, count] : repaired.repairs)
    std::cout << fmt::format("  {:6}  {}\n", count, what);
  std::cout << fmt::format("wrote {}\n", arguments.fixed);
  const std::string& advice = repaired.first_fix.empty() ? review.first_fix : repaired.first_fix;
  if (repaired.num_lost > 0 && !advice.empty())
    std::cout << wrapped("to keep all: " + advice + "\n", 2);
  if (!arguments.model_dir.empty()) print_lengths(arguments.fixed, arguments.model_dir);
}

/// Prints counts and findings.
void print_review(const Review& review, const DataCheckArguments& arguments) {
  print_counts(review, arguments.path);
  print_similar_classes(review);
  print_findings(review, arguments.all ? SIZE_MAX : kShownFindings);
  if (review.num_outside > 0)
    std::cout << fmt::format(
        "{} outside the directory of the JSONL by absolute paths or links:\n"
        "  a copy of that directory lacks {}\n",
        review.num_outside == 1 ? "1 image lies" : fmt::format("{} images lie", review.num_outside),
        review.num_outside == 1 ? "it" : "them");
  print_turned(review);
}

/// Writes the repaired copy and tells first what is lost. An error comes after the findings.
int fix_file(const Review& review, const DataCheckArguments& arguments, RepairOptions options) {
  options.advice = review.first_fix;
  options.strict = arguments.strict;
  survive_closed_pipe();
  RepairedRecords repaired;
  try {
    repaired = write_repaired(arguments.path, arguments.fixed, options);
  } catch (const UserError&) {
    print_review(review, arguments);
    throw;
  }
  print_loss(repaired);
  print_review(review, arguments);
  print_repairs(repaired, review, arguments);
  return 0;
}

int run_data_check(const DataCheckArguments& arguments) {
  require_records_file(arguments.path);
  InputFiles inputs{arguments.path};
  add_model(inputs, arguments.model_dir);
  if (!arguments.fixed.empty()) inputs.refuse(arguments.fixed);
  const std::vector<std::string> added_tokens = added_tokens_of(arguments.model_dir);
  const RepairOptions options = repair_options(arguments, added_tokens, inputs);
  const Review review = review_jsonl(arguments.path, arguments.decode, added_tokens);
  if (!arguments.fixed.empty()) return fix_file(review, arguments, options);
  print_review(review, arguments);
  const bool usable = is_usable(review);
  if (usable && !arguments.model_dir.empty()) print_lengths(arguments.path, arguments.model_dir);
  const std::string seen =
      arguments.decode ? "training can use it"
                       : "training can use it, by the headers of its images (--decode reads all)";
  std::cout << (usable ? seen : check_advice(review, arguments.path, options)) << "\n";
  return usable ? 0 : exit_code(ErrorKind::kData);
}

}  // namespace

Command add_data_check(CLI::App& data) {
  CLI::App* app = data.add_subcommand(
      "check", "counts, sizes, classes and everything odd about a JSONL, with line numbers");
  const auto arguments = std::make_shared<DataCheckArguments>();
  app->add_option("JSONL", arguments->path, "records as training reads them")->required();
  app->add_option("--fix", arguments->fixed, "write a repaired copy here");
  app->add_option(
         "--boxes", arguments->box_form,
         "with --fix: what the four numbers of a box mean: xyxy (corners), xywh (left, top, "
         "width, height) or cxcywh (centre); needed when many corners are swapped")
      ->check(CLI::IsMember({"xyxy", "xywh", "cxcywh"}));
  app->add_option("--unit", arguments->unit,
                  "with --fix: unit of the numbers: bins, pixels or normalized (0..1); default: by "
                  "the numbers of 30 objects or more")
      ->check(CLI::IsMember({"bins", "pixels", "normalized"}));
  app->add_option("--model", arguments->model_dir,
                  "model directory: lengths in tokens (of the copy with --fix), as its tokenizer "
                  "and image processor give them");
  app->add_flag("--strict", arguments->strict,
                "with --fix: write nothing and end with exit code 3 when something would be left "
                "out")
      ->needs(app->get_option("--fix"));
  app->add_flag("--decode", arguments->decode, "decode every image, not only its header");
  app->add_flag("--all", arguments->all, "list every finding; default: five of a kind");
  app->footer(
      "Examples:\n  rematch data check data/train.jsonl\n  rematch data check raw.jsonl --fix "
      "data/train.jsonl\n  rematch data check raw.jsonl --fix data/train.jsonl --boxes xywh --unit "
      "pixels\n  rematch data check "
      "data/train.jsonl --model base\nExit code 3 when training "
      "would refuse the file.");
  return {app, [arguments] { return run_data_check(*arguments); }};
}

}  // namespace rematch
