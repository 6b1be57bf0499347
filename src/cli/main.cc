// The command line: the only place that prints errors and decides exit codes. One CLI11 subcommand for each command; the work is in
// cmd_*.cc.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>

#include "assembly/loss_keys.h"
#include "base/error.h"
#include "base/interrupt.h"
#include "base/text.h"
#include "cli/command_set.h"
#include "cli/commands.h"
#include "cli/completions.h"
#include "cli/out_of_memory.h"
#include "cli/stage.h"
#include "cli/stage_table.h"
#include "cli/standard_output.h"
#include "dist/error_file.h"
#include "nn/affine.h"

namespace rematch {
namespace {

int report_bug(const char* text) {
  std::cerr << format_problem({.error = "Rematch hit a bug",
                               .where = "inside the program",
                               .what = text,
                               .fix = "please report it with the configuration and this message"});
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
    if (!is_out_of_memory(error)) return report_bug(error.what());
    std::cerr << format_problem(out_of_memory(error));
    return exit_code(ErrorKind::kEnvironment);
  }
}

// CLI11's errors, in the same four lines as every other error.
int report_usage(const CLI::App& app, const CLI::ParseError& error, const std::string& first, const std::string& second) {
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  if (first.empty()) std::cerr << app.help();
  const auto is_named = [&first](const CLI::App* command) { return command->check_name(first); };
  const std::vector<const CLI::App*> named = app.get_subcommands(is_named);
  const bool is_unknown = !first.empty() && first[0] != '-' && named.empty();
  std::string meant = first.empty() ? "" : meant_command(app, first);
  if (meant.empty() && !named.empty() && !second.empty())
    if (const std::string inner = meant_command(*named.front(), second); !inner.empty()) meant = first + " " + inner;
  std::cerr << format_problem({.error = "the command line is invalid",
                               .where = "rematch …",
                               .what = is_unknown ? fmt::format("unknown command `{}`", first) : error.what(),
                               .fix = (meant.empty() ? "" : fmt::format("did you mean `rematch {}`? ", meant)) +
                                      "see `rematch --help` and `rematch COMMAND --help`; hyper-parameters live in the YAML, "
                                      "or use --set KEY=VALUE"});
  return exit_code(ErrorKind::kConfig);
}

void add_config_arguments(CLI::App& command, RunArguments& arguments) {
  command.add_option("CONFIG", arguments.config_path, "YAML configuration")->required();
  command.add_option("--set", arguments.overrides, "override a YAML key by its own name: --set a.b.c=value (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--device", arguments.device, "auto (CUDA when there is one), cpu, cuda or cuda:N")->capture_default_str();
}

void add_plan_arguments(CLI::App& command, PlanArguments& arguments) {
  command.add_option("CONFIG|MODEL_DIR", arguments.path, "YAML configuration, or a model directory (its config.json is enough)")
      ->required();
  command.add_option("--set", arguments.overrides, "override a YAML key by its own name: --set a.b.c=value (repeatable)")
      ->allow_extra_args(false);
  command.add_option("--gpu-memory", arguments.gpu_memory_gib, "plan for a GPU with this many GiB; default: the CPU of this machine")
      ->check(CLI::PositiveNumber);
  command.add_option("--ranks", arguments.num_ranks, "data-parallel ranks, one device each")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      .add_option("--zero-stage", arguments.zero_stage,
                  "default: training.zero_stage; 1 shards the optimizer state over the ranks, 2 the gradient sums too")
      ->check(CLI::Range(0, 2));
  command.add_option("--row-tokens", arguments.row_tokens, "tokens of the longest sample; default: global_max_length, or 4096")
      ->check(CLI::Range(1, 1 << 24));
  command.add_option("--image-tokens", arguments.image_tokens, "how many of these are image pads; default: half")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--json", arguments.json, "print one JSON object instead of tables");
}

void add_check_arguments(CLI::App& command, CheckArguments& arguments) {
  add_config_arguments(command, arguments.run);
  command.add_option("--gpu-memory", arguments.gpu_memory_gib, "refuse a run that cannot fit a GPU with this many GiB")
      ->check(CLI::PositiveNumber);
  command.add_option("--ranks", arguments.num_ranks, "ranks that will train together")->check(CLI::Range(1, 65536))->capture_default_str();
  CLI::Option* json = command.add_flag("--json", arguments.json, "print one JSON object: problems, warnings, plan, configuration");
  command.add_flag("--config-only", arguments.config_only, "look at the configuration alone: model and data may be elsewhere")
      ->excludes(json);
}

// A run that cannot fit is refused before its values are shown.
int check_config_only(const CheckArguments& arguments) {
  const std::string warning = check_memory({.path = arguments.run.config_path,
                                            .overrides = arguments.run.overrides,
                                            .gpu_memory_gib = arguments.gpu_memory_gib,
                                            .num_ranks = arguments.num_ranks});
  const int code = run_check(arguments.run.config_path, arguments.run.overrides, std::cout);
  if (!warning.empty()) std::cout << "warning: " << warning << "\n";
  return code;
}

struct StageArguments {
  std::string name;
  StageOptions options;
};

CLI::App* add_stage_command(CLI::App& app, StageArguments& arguments) {
  CLI::App* command = app.add_subcommand("stage", "run one stage of the loop on JSON lines (stdin → stdout)");
  std::string names = "stage to run:";
  for (const StageRow& row : stage_table()) names += fmt::format("\n  {:9} {}", row.name, row.summary);
  command->add_option("NAME", arguments.name, names)->required();
  command->add_option("--model", arguments.options.model_dir, "Hugging Face directory (text stages need only its tokenizer.json)");
  command->add_option("--output", arguments.options.output_dir, "directory for safetensors files");
  command->add_option("--backend", arguments.options.backend, "rollout backend of `generate`")->capture_default_str();
  command->add_option("--dtype", arguments.options.dtype, "float32 or bfloat16")->capture_default_str();
  command->add_option("--device", arguments.options.device, "auto, cpu, cuda or cuda:N");
  command->add_option("--batch-size", arguments.options.batch_size, "input lines generated together")->capture_default_str();
  return command;
}

int run_stage_command(const CLI::App& command, const StageArguments& arguments) {
  const StageRow& row = find_stage(arguments.name);
  const auto takes = [&row](const std::string& name) {
    return std::find(row.options.begin(), row.options.end(), name) != row.options.end();
  };
  for (const char* name : {"model", "output", "backend", "dtype", "device", "batch-size"}) {
    const bool given = command.count(std::string("--") + name) > 0;
    const bool needed = std::string(name) == "model" || std::string(name) == "output";
    if (given && !takes(name)) {
      throw UserError(ErrorKind::kConfig, {.error = fmt::format("stage {} does not take --{}", row.name, name),
                                           .where = fmt::format("rematch stage {}", row.name),
                                           .what = fmt::format("its options: {}", row.options.empty() ? "none" : join(row.options, ", ")),
                                           .fix = "remove the option"});
    }
    if (needed && takes(name) && !given) {
      throw UserError(ErrorKind::kConfig, {.error = fmt::format("stage {} needs --{}", row.name, name),
                                           .where = fmt::format("rematch stage {}", row.name),
                                           .what = "the option is missing",
                                           .fix = fmt::format("add --{} DIR", name)});
    }
  }
  if (arguments.options.batch_size < 1) {
    throw UserError(ErrorKind::kConfig, {.error = "--batch-size must be at least 1",
                                         .where = "rematch stage --batch-size",
                                         .what = std::to_string(arguments.options.batch_size),
                                         .fix = "set it to 1 or more"});
  }
  const std::unique_ptr<Stage> stage = row.make(arguments.options);
  return run_stage(*stage, arguments.options.batch_size, std::cin, std::cout);
}

int main_command(int argc, char** argv) {
  CLI::App app{
      "Rematch — rollout-matching SFT for vision-language models: the model answers, its answer is matched with the ground truth, and "
      "the model learns from the result.\n"
      "Start with `scripts/demo`; every configuration key is in docs/config.md.",
      "rematch"};
  app.set_version_flag("--version", std::string("rematch ") + REMATCH_VERSION + " (libtorch " + REMATCH_TORCH_VERSION + ")");
  app.require_subcommand(1);
  app.footer("Exit codes: 0 success, 2 configuration or usage, 3 data, 4 environment, 70 a bug in Rematch, 130 interrupted (state saved).");

  RunArguments run;
  CLI::App* train = app.add_subcommand("train", "train stage 1 or stage 2 (custom.trainer_variant: rollout_matching_sft)");
  add_config_arguments(*train, run);
  LaunchArguments launch_arguments;
  CLI::App* launch = app.add_subcommand("launch", "start `train CONFIG …` or `eval CONFIG …` once for each of several ranks on this host");
  launch->add_option("--nproc", launch_arguments.num_ranks, "number of ranks, each a process")->required()->check(CLI::Range(1, 1024));
  launch
      ->add_option("--restarts", launch_arguments.num_restarts,
                   "how often all ranks restart from the latest checkpoint after one has failed")
      ->check(CLI::Range(0, 1000))
      ->capture_default_str();
  launch->prefix_command();
  CLI::App* eval = app.add_subcommand("eval", "roll out, parse and match custom.val_jsonl; print precision, recall, F1");
  add_config_arguments(*eval, run);
  CheckArguments check_arguments;
  CLI::App* check = app.add_subcommand("check", "find everything that `train` would refuse, in seconds; print every value and its origin");
  add_check_arguments(*check, check_arguments);
  PlanArguments plan_arguments;
  CLI::App* plan =
      app.add_subcommand("plan", "estimate how much memory a run takes, phase by phase, and whether it fits; needs no weights");
  add_plan_arguments(*plan, plan_arguments);
  CLI::App* rollout = app.add_subcommand("rollout", "write each sample's rollout, parse and match as JSON lines");
  add_config_arguments(*rollout, run);
  std::string split, rollout_output;
  rollout->add_option("--split", split, "val or train; default: val if the configuration has validation data")
      ->check(CLI::IsMember({"val", "train"}));
  rollout->add_option("--output", rollout_output, "file to write; default: rollouts.jsonl in the run directory");
  CLI::App* probe = app.add_subcommand("probe", "measure whether stage 2 can help a checkpoint, and say what to do");
  add_config_arguments(*probe, run);
  int num_draws = 8;
  bool probe_as_json = false;
  probe->add_option("--samples", num_draws, "sampled answers for each image whose greedy answer misses an object")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  probe->add_flag("--json", probe_as_json, "print one JSON object instead of tables");
  CLI::App* coord =
      app.add_subcommand("add-coord-tokens", "add the 1000 coord tokens <|coord_0|> … <|coord_999|> to a stock model directory");
  std::string model_dir, out_dir;
  coord->add_option("MODEL", model_dir, "Hugging Face directory")->required();
  coord->add_option("OUT", out_dir, "directory to create")->required();
  bool untie = false;
  coord->add_flag("--untie", untie, "give a model with tied embeddings a head of its own");
  CLI::App* merge = app.add_subcommand("merge", "merge a LoRA or DoRA adapter into its base model; write a full Hugging Face directory");
  MergeArguments merge_arguments;
  merge->add_option("ADAPTER_DIR", merge_arguments.adapter_dir, "PEFT directory, e.g. checkpoint-N of a run with tuner.train_type: lora")
      ->required();
  merge->add_option("--output", merge_arguments.output_dir, "directory to create")->required();
  merge->add_option("--model", merge_arguments.model_dir, "base model; default: the one named by the adapter");
  merge->add_option("--dtype", merge_arguments.dtype, "float32 or bfloat16; default: the dtype of the base model's weights")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  CLI::App* doctor = app.add_subcommand("doctor", "report which rollout backends can run here, and what the others lack");
  DoctorArguments doctor_arguments;
  doctor->add_option("CONFIG", doctor_arguments.config_path, "YAML configuration whose vllm.* settings are used");
  doctor->add_option("--device", doctor_arguments.device, "auto, cpu, cuda or cuda:N")->capture_default_str();
  StageArguments stage_arguments;
  CLI::App* stage = add_stage_command(app, stage_arguments);
  const std::vector<Command> commands = add_commands(app);

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return report_usage(app, error, argc > 1 ? argv[1] : "", argc > 2 ? argv[2] : "");
  }
  return guarded([&] {
    // What these leave behind outlives a terminal; every other command only prints, and ends with its reader.
    const bool works = train->parsed() || launch->parsed() || eval->parsed() || rollout->parsed() || coord->parsed() || merge->parsed();
    if (works) survive_closed_pipe();
    if (train->parsed()) return run_train(run);
    if (launch->parsed()) {
      launch_arguments.command = launch->remaining();
      return run_launch(launch_arguments);
    }
    if (eval->parsed()) return run_eval(run);
    if (check->parsed())
      return check_arguments.config_only ? check_config_only(check_arguments) : run_preflight(check_arguments, std::cout);
    if (probe->parsed()) return run_probe(run, num_draws, probe_as_json);
    if (plan->parsed()) return run_plan(plan_arguments, std::cout);
    if (rollout->parsed()) return run_rollout(run, split, rollout_output);
    if (coord->parsed()) return run_add_coord_tokens(model_dir, out_dir, untie);
    if (merge->parsed()) return run_merge(merge_arguments);
    if (doctor->parsed()) return run_doctor(doctor_arguments, std::cout);
    for (const Command& command : commands) {
      if (command.app->parsed()) return command.run();
    }
    return run_stage_command(*stage, stage_arguments);
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
