// `rematch compare RUN …` and `rematch report RUN …`: what runs came to.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/terminal_text.h"
#include "base/output_file.h"
#include "cli/command_set.h"
#include "draw/encode.h"
#include "observe/terminal.h"
#include "report/answer_sheet.h"
#include "report/evaluated_sample.h"
#include "report/report.h"
#include "report/score_table.h"

namespace rematch {
namespace {

constexpr int kSheetRows = 4;

struct CompareArguments {
  std::vector<std::string> runs;
  std::string out;
};

InputFiles files_of(const std::vector<RunData>& runs) {
  InputFiles inputs;
  for (const RunData& run : runs) {
    for (const std::string& file : run.files) inputs.add(file);
  }
  return inputs;
}

void add_images(InputFiles& inputs, const std::vector<RunData>& runs) {
  for (const RunData& run : runs) {
    for (const EvaluationFile& evaluation : run.evaluations) {
      if (evaluation.samples_path.empty()) continue;
      for (const EvaluatedSample& sample : read_evaluated_samples(evaluation.samples_path))
        inputs.add(sample.image_path);
    }
  }
}

void warn_about(const std::vector<RunData>& runs, Terminal& terminal) {
  for (const RunData& run : runs) {
    for (const std::string& text : run.warnings) terminal.warn(text);
  }
}

/// Names the runs that the scores leave out.
void warn_about_missing(const std::vector<RunData>& runs, Terminal& terminal) {
  for (const RunData& run : runs) {
    if (run.evaluations.empty())
      terminal.warn(fmt::format("{} has no evaluation and no scores here: rematch eval {}",
                                run.path, shell_word(run.path)));
  }
}

int run_compare(const CompareArguments& arguments) {
  const std::vector<RunData> runs = read_runs(arguments.runs);
  const InputFiles inputs = files_of(runs);
  if (!arguments.out.empty()) inputs.refuse(arguments.out);
  const std::vector<NamedEvaluation> evaluations = list_evaluations(runs);
  if (evaluations.empty()) {
    throw UserError(ErrorKind::kData,
                    {.error = "these runs have no evaluation to compare",
                     .where = arguments.runs.front(),
                     .what = "neither eval_results.json nor an evaluation in logging.jsonl",
                     .fix = "run `rematch eval CHECKPOINT` for each"});
  }
  const std::vector<std::vector<std::string>> table = score_table(evaluations);
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  warn_about(runs, *terminal);
  warn_about_missing(runs, *terminal);
  terminal->table(table);
  const std::string different = different_sets(evaluations);
  if (different.empty()) {
    terminal->print("* the best of its row");
  } else {
    terminal->warn(different);
  }
  const EvaluationFile* before =
      evaluations.size() > 1 && different.empty() ? evaluations.front().file : nullptr;
  for (const HealthItem& item : judge_health(*evaluations.back().file, before)) {
    if (!item.good)
      terminal->warn(fmt::format("{}: {} {}. {}", evaluations.back().name, item.name, item.value,
                                 item.advice));
  }
  if (!arguments.out.empty()) {
    write_output(arguments.out, inputs, markdown_table(table));
    terminal->say("wrote " + arguments.out);
  }
  return 0;
}

struct ReportArguments {
  std::vector<std::string> runs;
  std::string out = "report.html", sheet;
  GalleryOptions gallery;
};

int run_report(const ReportArguments& arguments) {
  const std::vector<RunData> runs = read_runs(arguments.runs);
  InputFiles inputs = files_of(runs);
  add_images(inputs, runs);
  for (const std::string& out : {arguments.out, arguments.sheet}) inputs.refuse(out);
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  warn_about(runs, *terminal);
  if (!list_evaluations(runs).empty()) warn_about_missing(runs, *terminal);
  const std::string html = report_html(runs, arguments.gallery);
  write_output(arguments.out, inputs, html);
  std::cout << fmt::format("wrote {} ({:.1f} MB); open it in a browser\n", arguments.out,
                           static_cast<double>(html.size()) / 1e6);
  if (!arguments.sheet.empty()) {
    const Canvas sheet = draw_answer_sheet(list_evaluations(runs), kSheetRows);
    write_output(arguments.sheet, inputs, encode_png(sheet.image()));
    std::cout << fmt::format("wrote {}\n", arguments.sheet);
  }
  return 0;
}

}  // namespace

std::vector<Command> add_report_commands(CLI::App& app) {
  CLI::App* compare = app.add_subcommand(
      "compare", "print a table of the scores of runs; warn about scores that got worse");
  const auto compared = std::make_shared<CompareArguments>();
  compare
      ->add_option("RUN", compared->runs,
                   "run directories or result files, the one to compare with first")
      ->required();
  compare->add_option("--out", compared->out, "write the table as Markdown");
  compare->footer(
      "Examples:\n  rematch compare output/before output/first output/second\n"
      "  rematch compare output/first/eval/checkpoint-100.json "
      "output/first/eval/checkpoint-200.json --out table.md");
  CLI::App* report = app.add_subcommand(
      "report",
      "write one HTML page about runs: scores, health, curves, time, pictures, configuration");
  const auto reported = std::make_shared<ReportArguments>();
  report
      ->add_option("RUN", reported->runs,
                   "run directories or result files, \"before\" first and \"after\" last")
      ->required();
  report->add_option("--out", reported->out, "file to write")->capture_default_str();
  report->add_option("--worst", reported->gallery.num_worst, "samples with the lowest label F1")
      ->capture_default_str()
      ->check(CLI::Range(0, 200));
  report->add_option("--even", reported->gallery.num_even, "samples evenly spaced over the data")
      ->capture_default_str()
      ->check(CLI::Range(0, 200));
  report->add_option(
      "--sheet", reported->sheet,
      fmt::format("also write a PNG: truth and answers of each evaluation, {} samples",
                  kSheetRows));
  report->footer(
      "Examples:\n  rematch report output/before output/first output/after --out first.html\n  "
      "rematch report output/first --worst 24 "
      "--even 0");
  return {{compare, [compared] { return run_compare(*compared); }},
          {report, [reported] { return run_report(*reported); }}};
}

}  // namespace rematch
