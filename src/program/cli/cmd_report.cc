// `rematch report RUN …`: one page about runs.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <iostream>
#include <memory>

#include "base/terminal_text.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "program/cli/run_files.h"
#include "program/cli/standard_output.h"
#include "tools/draw/encode.h"
#include "tools/report/answer_sheet.h"
#include "tools/report/evaluated_sample.h"
#include "tools/report/report.h"
#include "tools/report/score_table.h"

namespace rematch {
namespace {

constexpr int kSheetRows = 4;

void add_images(InputFiles& inputs, const std::vector<RunData>& runs) {
  for (const RunData& run : runs) {
    for (const EvaluationFile& evaluation : run.evaluations) {
      if (evaluation.samples_path.empty()) continue;
      for (const EvaluatedSample& sample : read_evaluated_samples(evaluation.samples_path))
        inputs.add(sample.image_path);
    }
  }
}

struct ReportArguments {
  Strings runs;
  std::string out = "report.html", sheet;
  GalleryOptions gallery;
};

int run_report(const ReportArguments& arguments) {
  const std::vector<RunData> runs = read_runs(arguments.runs);
  InputFiles inputs = run_files(runs);
  add_images(inputs, runs);
  for (const std::string& out : {arguments.out, arguments.sheet}) inputs.refuse(out);
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  print_warnings(runs, *terminal);
  const std::string html = report_html(runs, arguments.gallery);
  write_output(arguments.out, inputs, html);
  print("wrote {} ({}); open it in a browser\n", arguments.out, shown_bytes(std::ssize(html)));
  if (!arguments.sheet.empty()) {
    const Canvas sheet = draw_answer_sheet(list_evaluations(runs), kSheetRows);
    write_output(arguments.sheet, inputs, encode_png(sheet.image()));
    print("wrote {}\n", arguments.sheet);
  }
  return 0;
}

}  // namespace

Command add_report_command(CLI::App& app) {
  const auto [command, report, arguments] = make_command(
      app, "report",
      "write one HTML page about runs: scores, curves, time, pictures, configuration", run_report,
      {"output/before output/first --out first.html", "output/first --worst 24 --even 0"});
  report
      .add_option("RUN", arguments.runs,
                  "run directories or result files, \"before\" first and \"after\" last")
      ->required();
  report.add_option("--out", arguments.out, "file to write")
      ->check(file_ending(".html"))
      ->capture_default_str();
  report.add_option("--worst", arguments.gallery.num_worst, "samples with the lowest label F1")
      ->capture_default_str()
      ->check(CLI::Range(0, 200));
  report.add_option("--even", arguments.gallery.num_even, "samples evenly spaced over the data")
      ->capture_default_str()
      ->check(CLI::Range(0, 200));
  report
      .add_option("--sheet", arguments.sheet,
                  fmt::format("also write a PNG: truth and answers of each evaluation, {} samples",
                              kSheetRows))
      ->check(file_ending(".png"));
  return command;
}

}  // namespace rematch
