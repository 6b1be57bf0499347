#include "program/cli/program.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <climits>
#include <iostream>
#include <memory>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "base/interrupt.h"
#include "base/observe/terminal.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "engine/ranks/error_file.h"
#include "model/nn/affine.h"
#include "program/assembly/loss_keys.h"
#include "program/cli/help_format.h"
#include "program/cli/out_of_memory.h"
#include "program/cli/standard_output.h"
#include "program/cli/usage_problem.h"

namespace rematch {
namespace {

/// Errors as a terminal shows them: wrapped at its width, with their heading in red.
std::string in_color(std::string text) {
  constexpr size_t kIndent = 9;  // of the text after "  what:  "
  if (const size_t columns = Terminal::columns(STDERR_FILENO); columns > 2 * kIndent)
    text = wrapped(text, kIndent, columns);
  if (!Terminal::shows_color()) return text;
  std::string colored;
  for (const std::string& line : split(text, '\n')) {
    constexpr std::string_view kHeading = "error:";
    const bool is_heading = line.starts_with(kHeading);
    if (!colored.empty()) colored += '\n';
    colored += is_heading ? "\033[1;31merror:\033[0m" + line.substr(kHeading.size()) : line;
  }
  return colored;
}

int report_bug(const char* text) {
  std::cerr << in_color(format_problem(bug_problem(text)));
  return exit_code(ErrorKind::kBug);
}

int guarded(const std::function<int()>& action) {
  try {
    return action();
  } catch (const UserError& error) {
    std::cerr << in_color(error.what()) << std::flush;
    write_error_file(error.what());
    return exit_code(error.kind());
  } catch (const Interrupted&) {
    std::cerr << "interrupted\n";
    return exit_code(ErrorKind::kInterrupted);
  } catch (const std::exception& error) {
    std::optional<Problem> problem = path_problem(error);
    if (!problem && is_out_of_memory(error)) problem = out_of_memory(error);
    if (!problem) return report_bug(error.what());
    std::cerr << in_color(format_problem(*problem));
    return exit_code(ErrorKind::kEnvironment);
  }
}

// CLI11's errors, in the same four lines as every other error; its help where no command was given.
int report_usage(const CLI::App& app, const CLI::ParseError& error, const Strings& arguments) {
  if (error.get_name() == "CallForHelp") {
    std::cout << wrapped_help(app.help(), Terminal::columns(STDOUT_FILENO));
    return 0;
  }
  if (error.get_exit_code() == 0) return app.exit(error);  // --version
  if (arguments.size() == 1) {
    std::cerr << wrapped_help(app.help(), Terminal::columns(STDERR_FILENO));
    return exit_code(ErrorKind::kConfig);
  }
  const bool has_extras = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  std::cerr << in_color(format_problem(usage_problem(app, error.what(), has_extras, arguments)));
  return exit_code(ErrorKind::kConfig);
}

/// Ends the process if it cannot read its current directory: MKL, inside libtorch, would end it
/// with a message about its own files when it is loaded.
[[gnu::no_sanitize_address]] void require_current_directory() {
  static std::array<char, PATH_MAX> path;
  if (::syscall(SYS_getcwd, &path, sizeof(path)) > 0) return;
  constexpr std::string_view kProblem =
      "error: the current directory cannot be read\n"
      "  where: the directory in which the program was started\n"
      "  what:  it was removed, or its path is longer than 4095 characters\n"
      "  fix:   change to a directory that exists, and start it again\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kProblem.data(), kProblem.size());
  ::_exit(4);  // exit_code(ErrorKind::kEnvironment)
}

[[gnu::no_sanitize_address]] bool starts_with(const char* text, const char* start) {
  while (*start != '\0' && *text == *start) ++text, ++start;
  return *start == '\0';
}

/// Starts the program again with GOMP_SPINCOUNT, which OpenMP reads when it is loaded. Its default
/// lets torch's threads spin for milliseconds at every wait, while another program needs the core
/// of the one they wait for; 2000 turns outlast the differences between threads on free cores.
[[gnu::no_sanitize_address]] void spin_briefly(char** arguments, char** environment) {
  constexpr size_t kMost = 4096;
  static std::array<const char*, kMost> changed;
  static std::array<char, PATH_MAX> program;
  size_t size = 0;
  for (; environment[size] != nullptr; ++size) {
    if (size + 2 == kMost || starts_with(environment[size], "GOMP_SPINCOUNT=") ||
        starts_with(environment[size], "OMP_WAIT_POLICY="))
      return;
    changed[size] = environment[size];
  }
  changed[size] = "GOMP_SPINCOUNT=2000";
  // By its path: of /proc/self/exe, process lists would show the name `exe`.
  if (::syscall(SYS_readlink, "/proc/self/exe", &program, sizeof(program) - 1) > 0)
    ::syscall(SYS_execve, &program, arguments, &changed);
}

/// Runs before any library is initialised, and calls nothing but the kernel.
[[gnu::no_sanitize_address]] void before_libraries(int, char** arguments, char** environment) {
  require_current_directory();
  spin_briefly(arguments, environment);
}
[[gnu::used, gnu::section(".preinit_array")]] void (*g_before_libraries)(int, char**,
                                                                         char**) = before_libraries;

/// The arguments as CLI11 takes them, the last one first. The value of `--name=` is empty: CLI11
/// would take the next argument for it.
Strings reversed_arguments(int argc, char** argv) {
  Strings arguments;
  for (int i = argc - 1; i > 0; --i) {
    std::string argument = argv[i];
    if (argument.starts_with("--") && argument.find('=') == argument.size() - 1) {
      arguments.emplace_back();
      argument.pop_back();
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

int run_command_line(CLI::App& app, const std::vector<Command>& commands, int argc, char** argv) {
  try {
    app.parse(reversed_arguments(argc, argv));
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, {argv, argv + argc});
  }
  return guarded([&] {
    const auto given = std::ranges::find_if(
        commands, [](const Command& command) { return command.app->parsed(); });
    REMATCH_CHECK(given != commands.end());
    if (given->writes_files) survive_closed_pipe();
    for (const char* name : {"--out", "--fix", "--sheet"}) {
      const CLI::Option* file = given->app->get_option_no_throw(name);
      if (file != nullptr && file->count() > 0) reserve_standard_output(file->as<std::string>());
    }
    return given->run();
  });
}

}  // namespace

int run_program(CLI::App& app, const std::function<std::vector<Command>(CLI::App&)>& add, int argc,
                char** argv) {
  std::ios::sync_with_stdio(false);
  watch_standard_output();
  bound_onednn_caches();
  explain_crashes_under_memory_limit();
  add_loss_keys();
  install_interrupt_handlers();

  app.require_subcommand(1);
  app.formatter(std::make_shared<HelpFormatter>());
  app.footer(
      "Exit codes: 0 success, 2 configuration or usage, 3 data, 4 environment, 70 a bug in "
      "Rematch, 130 interrupted (state saved).");
  const std::vector<Command> commands = add(app);
  return finish_standard_output(run_command_line(app, commands, argc, argv));
}

}  // namespace rematch
