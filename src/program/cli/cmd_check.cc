// `rematch check CONFIG`: everything that `train` would refuse, at once and before anything is
// loaded, and what the run needs.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/json.h"
#include "base/terminal_text.h"
#include "program/assembly/preflight.h"
#include "program/assembly/run_directory.h"
#include "program/cli/arguments.h"
#include "program/cli/cmd_plan.h"
#include "program/cli/command_set.h"
#include "program/cli/standard_output.h"
#include "program/config/config.h"
#include "tools/plan/advice.h"
#include "tools/plan/report.h"

namespace rematch {
namespace {

struct CheckArguments {
  ConfigArguments run;
  PlanArguments plan = {};   ///< of the machine that it is meant for
  bool config_only = false;  ///< the configuration alone, for a machine without model and data
  bool json = false;
  bool all_values = false;  ///< those at their defaults too
};

Json json_of(ErrorKind kind, const Problem& problem) {
  return {{"kind", kind_name(kind)},
          {"error", problem.error},
          {"where", problem.where},
          {"what", problem.what},
          {"fix", problem.fix}};
}

/// All that was found, and the values and needs of a run that can start.
struct Found {
  Report report;
  RunFacts facts;
  Json plan;              ///< null when it cannot be made
  std::string needs;      ///< the plan in a line
  std::string effective;  ///< text of the values
  Json config;
};

// Reported together with the other problems, so that fixing those does not reveal this one.
void look_at_memory(Found& found, const Settings& settings, const CheckArguments& arguments) {
  std::optional<PlanRequest> request;
  MemoryPlan plan;
  // A model without a readable config.json has been found already, or may be elsewhere.
  const bool is_known = !found.report.problems().empty() || arguments.config_only;
  Report ignored;
  const bool is_planned = (is_known ? ignored : found.report).attempt([&] {
    request = plan_request_of(settings, arguments.plan);
    plan = make_plan(*request);
  });
  if (!is_planned) return;
  found.plan = plan_json(*request, plan);
  found.needs =
      fmt::format("{} at most, in the phase {}", gib_text(plan.peak_bytes), plan.peak_phase);
  if (arguments.plan.num_ranks > 1)
    found.needs += fmt::format(", on each of {} ranks", arguments.plan.num_ranks);
  found.report.attempt([&] {
    PlanArguments asked = arguments.plan;
    asked.path = arguments.run.config_path;
    found.report.warn(check_memory(*request, plan, asked));
  });
}

Found look(CheckArguments arguments) {
  Found found;
  RunConfig run;
  const int num_ranks = arguments.plan.num_ranks;
  const bool is_loaded = found.report.attempt(
      [&] { run = load_run(arguments.run.config_path, arguments.run.overrides, num_ranks); });
  if (!is_loaded) return found;
  const ConfigResult& result = run.config;
  found.report.warn(run.note);
  found.effective = arguments.all_values ? effective_text(result) : brief_text(result);
  found.config = effective_json(result);
  for (const Warning& warning : result.warnings) found.report.warn(warning.line());
  found.facts = arguments.config_only
                    ? RunFacts{{"run directory", result.settings.output.run_dir}}
                    : preflight(result, arguments.run.device, num_ranks, found.report);
  look_at_memory(found, result.settings, arguments);
  return found;
}

void print_json(const Found& found) {
  Json root{{"ok", found.report.problems().empty()},
            {"problems", Json::array()},
            {"warnings", found.report.warnings()}};
  for (const auto& [kind, problem] : found.report.problems())
    root["problems"].push_back(json_of(kind, problem));
  for (const auto& [name, text] : found.facts) root["found"][name] = text;
  if (!found.plan.is_null()) root["plan"] = found.plan;
  if (!found.config.is_null()) root["config"] = found.config;
  std::cout << root.dump(2, ' ', /*ensure_ascii=*/true) << "\n";
}

void print_text(const Found& found) {
  print("{}\n", found.effective);
  const auto fact = [](const std::string& name, const std::string& text) {
    print("{}\n", wrapped(fmt::format("{:14} {}", name, text), 15));
  };
  for (const auto& [name, text] : found.facts) fact(name, text);
  if (!found.needs.empty()) fact("memory", found.needs + " (`rematch plan` shows every part)");
  for (const std::string& text : found.report.warnings()) {
    // Those of the configuration are in its text.
    if (found.effective.find("warning: " + text) == std::string::npos)
      print("{}\n", wrapped("warning: " + text, 2));
  }
}

/// @throws UserError with all problems, unless as JSON.
/// @return the exit code
int check_all(const CheckArguments& arguments) {
  const Found found = look(arguments);
  if (arguments.json) {
    print_json(found);
    const auto& problems = found.report.problems();
    return problems.empty() ? 0 : exit_code(problems.front().first);
  }
  found.report.throw_problems();
  print_text(found);
  if (!arguments.config_only) std::cout << "`rematch train` can start\n";
  return 0;
}

}  // namespace

Command add_check_command(CLI::App& app) {
  const auto [command, check, arguments] = make_command(
      app, "check",
      "find everything that `train` would refuse, in seconds; print what is set and from where",
      check_all, {"my.yaml", "my.yaml --gpu-memory 80 --ranks 4 --json"});
  add_config_arguments(check, arguments.run);
  add_plan_device(check, arguments.plan, "refuse a run that cannot fit a GPU with this many GiB");
  check.add_flag("--json", arguments.json,
                 "print one JSON object: problems, warnings, plan, configuration");
  check.add_flag("--config-only", arguments.config_only,
                 "look at the configuration alone: model and data may be elsewhere");
  check.add_flag("--all", arguments.all_values, "print every value, also those at their defaults");
  return command;
}

}  // namespace rematch
