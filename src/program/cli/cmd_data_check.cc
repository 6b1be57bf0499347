// `rematch data check`: everything odd about a JSONL, and a repaired copy.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "base/error.h"
#include "base/out_of_resources.h"
#include "base/terminal_text.h"
#include "learn/data/class_names.h"
#include "learn/data/records_path.h"
#include "program/cli/command_set.h"
#include "program/cli/data_commands.h"
#include "program/cli/standard_output.h"
#include "tools/review/review.h"

namespace rematch {
namespace {

constexpr size_t kShownFindings = 5;

void print_findings(const Review& review, size_t most) {
  for (size_t k = 0; k < kNumFindingKinds; ++k) {
    const std::vector<Finding>& findings = review.findings[k];
    if (findings.empty()) continue;
    print("{}: {}\n", finding_name(static_cast<FindingKind>(k)), findings.size());
    for (size_t i = 0; i < std::min(findings.size(), most); ++i)
      print("  line {}: {}\n", findings[i].line, printable(findings[i].what));
    if (findings.size() > most)
      print("  … and {} more (--all lists them)\n", findings.size() - most);
  }
}

void print_turned(const Review& review) {
  if (review.num_turned == 0) return;
  print("{} stored turned (EXIF): training turns each as viewers do\n",
        counted(review.num_turned, "photo is", "photos are"));
  if (review.num_hidden_turns > 0)
    print(
        "  {} square, mirrored or turned by half, so no size shows on which pixels the boxes were "
        "drawn:\n  look with `rematch data show`\n",
        counted(review.num_hidden_turns, "of them is", "of them are"));
}

struct DataCheckArguments {
  std::string path, fixed, unit;
  bool decode = false, all = false;
};

void print_counts(const Review& review, const std::string& path) {
  const auto spread = [](const Spread& spread) {
    return fmt::format("{} … {} … {}", spread.least, spread.median, spread.most);
  };
  if (review.num_refused == review.num_records) {
    print("{}: {}, none can be used\n", path, counted(review.num_records, "record"));
    return;
  }
  print("{}: {}, {} ({}, {}), {}\n", path, counted(review.num_records, "record"),
        counted(review.num_objects, "object"), counted(review.num_boxes, "box", "boxes"),
        counted(review.num_polygons, "polygon"), counted(review.num_empty_scenes, "empty scene"));
  print("width {} px, height {} px,\n  objects an image {} (least … median … most)\n",
        spread(review.width_px), spread(review.height_px), spread(review.objects_per_image));
  print_classes(review.classes);
}

/// The first line of a repair: how much is lost.
void print_loss(const RepairedRecords& repaired) {
  if (repaired.num_lost == 0) return;
  const int64_t num_all = repaired.num_lost + repaired.num_records;
  print("left out {} of {}{}\n", repaired.num_lost, counted(num_all, "record"),
        2 * repaired.num_lost > num_all ? ": most of the file" : "");
}

/// Tells what the repaired copy changes.
void print_repairs(const RepairedRecords& repaired, const Review& review, const std::string& out) {
  for (const auto& [what, count] : repaired.losses) print("  {:6}  left out: {}\n", count, what);
  for (const auto& [what, count] : repaired.changes) print("  {:6}  {}\n", count, what);
  print("wrote {}; numbers were read as {} (--unit)\n", out, name_of(repaired.unit));
  const std::string& advice = repaired.first_fix.empty() ? review.first_fix : repaired.first_fix;
  if (repaired.num_lost > 0 && !advice.empty())
    std::cout << wrapped("to keep all: " + advice + "\n", 2);
}

/// Prints counts and findings.
void print_review(const Review& review, const DataCheckArguments& arguments) {
  print_counts(review, arguments.path);
  for (const std::string& text : class_name_warnings(review.classes))
    std::cout << wrapped(text, 2) << "\n";
  print_findings(review, arguments.all ? SIZE_MAX : kShownFindings);
  if (review.num_outside > 0)
    print(
        "{} outside the directory of the JSONL by absolute paths or links,\n"
        "  and not in a copy of that directory\n",
        counted(review.num_outside, "image lies", "images lie"));
  print_turned(review);
}

/// Writes the repaired copy and tells first what is lost. An error comes after the findings.
int fix_file(const Review& review, const DataCheckArguments& arguments, RepairOptions options) {
  options.advice = review.first_fix;
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
  print_repairs(repaired, review, arguments.fixed);
  return 0;
}

/// The reason why training refuses the file, or would read it wrongly; "" for a usable one.
std::string find_trouble(const Review& review) {
  if (review.num_records == 0) return "training refuses it: it has no records";
  if (review.form_doubt) return "fix this first: " + review.form_doubt->why;
  if (review.unit_doubt)
    return fmt::format("fix this first: the coordinates {}", review.unit_doubt->why);
  for (const FindingKind kind :
       {FindingKind::kRefused, FindingKind::kUnreadableImage, FindingKind::kWrongSize,
        FindingKind::kUnturned, FindingKind::kInverted}) {
    if (!review.of(kind).empty()) return "training refuses it as it is";
  }
  return review.split_images.num_images > 0 ? "fix this first: " + review.split_images.text() : "";
}

/// The command that repairs a file, by a trial in memory, or the reason against it.
std::string repair_advice(const Review& review, const std::string& path, RepairOptions options) {
  std::string flags;
  if (review.unit_doubt && !review.unit_doubt->is_sure && !options.unit) {
    options.unit = review.unit_doubt->unit;
    flags = fmt::format(" --unit {}", name_of(*options.unit));
  }
  try {
    const RepairedRecords trial = repair_records(path, path, options);
    const std::string& fix = trial.first_fix.empty() ? review.first_fix : trial.first_fix;
    if (trial.num_records == 0)
      return "`--fix` cannot repair it; " +
             (fix.empty() ? "correct the records by hand, or convert them with `rematch data "
                            "from-…` (docs/data.md)"
                          : fix);
    std::string advice =
        fmt::format("`rematch data check {} --fix OUT{}` writes a {}copy", shell_word(path), flags,
                    trial.changes.empty() ? "" : "repaired ");
    if (trial.num_lost == 0) return advice;
    advice += fmt::format(", without {} of {}", trial.num_lost,
                          counted(trial.num_records + trial.num_lost, "record"));
    return fix.empty() ? advice : advice + "; to keep all: " + fix;
  } catch (const OutOfResources&) {
    throw;
  } catch (const UserError& error) {
    return fmt::format("{}: {}", error.problems().front().error, error.problems().front().fix);
  }
}

int run_data_check(const DataCheckArguments& arguments) {
  require_records_file(arguments.path);
  const InputFiles inputs{arguments.path};
  if (!arguments.fixed.empty()) inputs.refuse(arguments.fixed);
  const RepairOptions options{.decode = arguments.decode,
                              .unit = value_of<CoordinateUnit>(arguments.unit),
                              .others = inputs};
  const Review review = review_jsonl(arguments.path, arguments.decode);
  if (!arguments.fixed.empty()) return fix_file(review, arguments, options);
  print_review(review, arguments);
  const std::string trouble = find_trouble(review);
  if (trouble.empty()) {
    std::cout << (arguments.decode
                      ? "training can use it\n"
                      : "training can use it, by the headers of its images (--decode reads all)\n");
    return 0;
  }
  const std::string advice =
      review.num_records > 0 ? ". " + repair_advice(review, arguments.path, options) : "";
  print("{}\n", wrapped(trouble + advice, 2));
  return exit_code(ErrorKind::kData);
}

}  // namespace

Command add_data_check(CLI::App& data) {
  const auto [command, app, arguments] = make_command(
      data, "check", "counts, sizes, classes and everything odd about a JSONL, with line numbers",
      run_data_check, {"data/train.jsonl", "raw.jsonl --fix data/train.jsonl --unit pixels"});
  app.add_option("JSONL", arguments.path, "records as training reads them")->required();
  app.add_option("--fix", arguments.fixed, "write a repaired copy here");
  app.add_option("--unit", arguments.unit,
                 "with --fix: unit of the numbers: bins, pixels or normalized (0..1); default: by "
                 "the numbers of 30 objects or more")
      ->check(CLI::IsMember({"bins", "pixels", "normalized"}));
  app.add_flag("--decode", arguments.decode, "decode every image, not only its header");
  app.add_flag("--all", arguments.all, "list every finding; default: five of a kind");

  app.footer(app.get_footer() +
             "\nExit code 3 when training would refuse the file or read it wrongly.");
  return command;
}

}  // namespace rematch
