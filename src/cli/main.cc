// The command line: the only place that prints errors and decides exit codes. Arguments are
// declared in run_commands.cc, stage_command.cc and with the commands themselves; the work is in
// cmd_*.cc.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <optional>
#include <string_view>

#include "assembly/loss_keys.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "cli/command_set.h"
#include "cli/completions.h"
#include "cli/out_of_memory.h"
#include "cli/standard_output.h"
#include "ranks/error_file.h"
#include "nn/affine.h"

namespace rematch {
namespace {

int report_bug(const char* text) {
  std::cerr << format_problem(bug_problem(text));
  return exit_code(ErrorKind::kBug);
}

int guarded(const std::function<int()>& action) {
  try {
    return action();
  } catch (const UserError& error) {
    std::cerr << error.what() << std::flush;
    write_error_file(error.what());
    return exit_code(error.kind());
  } catch (const Interrupted&) {
    std::cerr << "interrupted\n";
    return exit_code(ErrorKind::kInterrupted);
  } catch (const std::exception& error) {
    std::optional<Problem> problem = path_problem(error);
    if (!problem && is_out_of_memory(error)) problem = out_of_memory(error);
    if (!problem) return report_bug(error.what());
    std::cerr << format_problem(*problem);
    return exit_code(ErrorKind::kEnvironment);
  }
}

// A command of earlier versions.
int refuse_launch() {
  std::cerr << format_problem({.error = "`rematch launch` was removed: torchrun starts the ranks",
                               .where = "rematch launch",
                               .what = "torchrun comes with torch",
                               .fix =
                                   "torchrun --no-python --nproc-per-node 2 rematch train my.yaml "
                                   "(docs/distributed.md)"});
  return exit_code(ErrorKind::kConfig);
}

// CLI11's errors, in the same four lines as every other error.
int report_usage(const CLI::App& app, const CLI::ParseError& error, const std::string& first,
                 const std::string& second) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  if (first.empty()) std::cerr << app.help();
  const auto is_named = [&first](const CLI::App* command) { return command->check_name(first); };
  const std::vector<const CLI::App*> named = app.get_subcommands(is_named);
  const bool is_unknown = !first.empty() && first[0] != '-' && named.empty();
  std::string meant = first.empty() ? "" : meant_command(app, first);
  if (meant.empty() && !named.empty() && !second.empty())
    if (const std::string inner = meant_command(*named.front(), second); !inner.empty())
      meant = first + " " + inner;
  std::cerr << format_problem(
      {.error = "the command line is invalid",
       .where = "rematch …",
       .what = is_unknown ? fmt::format("unknown command `{}`", first) : error.what(),
       .fix =
           (meant.empty() ? "" : fmt::format("did you mean `rematch {}`? ", meant)) +
           "see `rematch --help` and `rematch COMMAND --help`; hyper-parameters live in the YAML, "
           "or use --set KEY=VALUE"});
  return exit_code(ErrorKind::kConfig);
}

int main_command(int argc, char** argv) {
  CLI::App app{
      "Rematch — rollout-matching SFT for vision-language models: the model answers, its answer is "
      "matched with the ground truth, and "
      "the model learns from the result.\n"
      "Start with `scripts/demo`; every configuration key is in docs/config.md.",
      "rematch"};
  app.set_version_flag("--version", std::string("rematch ") + REMATCH_VERSION + " (libtorch " +
                                        REMATCH_TORCH_VERSION + ")");
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 success, 2 configuration or usage, 3 data, 4 environment, 70 a bug in "
      "Rematch, 130 interrupted (state saved).");

  const std::vector<Command> commands = add_commands(app);
  if (argc > 1 && std::string_view(argv[1]) == "launch") return refuse_launch();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  }
  return guarded([&] {
    const auto given = std::find_if(commands.begin(), commands.end(),
                                    [](const Command& command) { return command.app->parsed(); });
    REMATCH_CHECK(given != commands.end());
    if (given->leaves_files) survive_closed_pipe();
    return given->run();
  });
}

}  // namespace
}  // namespace rematch

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  rematch::watch_standard_output();
  rematch::bound_onednn_caches();
  rematch::add_loss_keys();
  rematch::install_interrupt_handlers();
  return rematch::finish_standard_output(rematch::main_command(argc, argv));
}
