// `rematch compare RUN …`: the scores of runs side by side.

#include <CLI/CLI.hpp>
#include <memory>

#include "base/error.h"
#include "base/output_file.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "program/cli/run_files.h"
#include "tools/report/score_table.h"

namespace rematch {
namespace {

struct CompareArguments {
  Strings runs;
  std::string out;
};

int run_compare(const CompareArguments& arguments) {
  const std::vector<RunData> runs = read_runs(arguments.runs);
  const InputFiles inputs = run_files(runs);
  inputs.refuse(arguments.out);
  const std::vector<NamedEvaluation> evaluations = list_evaluations(runs);
  if (evaluations.empty()) {
    throw data_error({.error = "these runs have no evaluation to compare",
                      .where = arguments.runs.front(),
                      .what = "neither eval_results.json nor an evaluation in logging.jsonl",
                      .fix = "run `rematch eval CHECKPOINT` for each"});
  }
  const std::vector<Strings> table = score_table(evaluations);
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  print_warnings(runs, *terminal);
  terminal->table(table);
  const std::string different = different_sets(evaluations);
  if (different.empty()) {
    terminal->print("* the best of its row");
  } else {
    terminal->warn(different);
  }
  if (!arguments.out.empty()) {
    write_output(arguments.out, inputs, markdown_table(table));
    terminal->say("wrote " + arguments.out);
  }
  return 0;
}

}  // namespace

Command add_compare_command(CLI::App& app) {
  const auto [command, compare, arguments] = make_command(
      app, "compare", "print a table of the scores of runs", run_compare,
      {"output/before output/first output/second",
       "output/first/eval/checkpoint-100.json output/first/eval/checkpoint-200.json --out "
       "table.md"});
  compare
      .add_option("RUN", arguments.runs,
                  "run directories or result files, the one to compare with first")
      ->required();
  compare.add_option("--out", arguments.out, "write the table as Markdown")
      ->check(file_ending(".md"));
  return command;
}

}  // namespace rematch
