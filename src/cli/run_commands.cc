// Commands that take a configuration or a model.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <iostream>
#include <memory>

#include "cli/command_set.h"
#include "cli/commands.h"
#include "estep/answer/answer_format.h"

namespace rematch {

CLI::Validator finite_range(double least, double most, const std::string& unit) {
  const std::string range = fmt::format("a number{} from {:.15g} to {:.15g}",
                                        unit.empty() ? "" : " of " + unit, least, most);
  return CLI::Validator(
      [=](std::string& text) -> std::string {
        char* end = nullptr;
        const double value = std::strtod(text.c_str(), &end);
        const bool fits = end != text.c_str() && *end == '\0' && value >= least && value <= most;
        return fits ? "" : fmt::format("{} is not {}", text, range);
      },
      fmt::format("FLOAT in [{:g} - {:g}]", least, most));
}

namespace {

void add_overrides(CLI::App& command, std::vector<std::string>& overrides) {
  command
      .add_option("--set", overrides,
                  "override a YAML key by its own name: --set a.b.c=value (repeatable)")
      ->allow_extra_args(false);
}

void add_config_arguments(CLI::App& command, RunArguments& arguments) {
  command.add_option("CONFIG", arguments.config_path, "YAML configuration")->required();
  add_overrides(command, arguments.overrides);
  command
      .add_option("--device", arguments.device,
                  "auto (CUDA when there is one), cpu, cuda or cuda:N")
      ->capture_default_str();
}

/// CONFIG, or a model directory and its records.
void add_asking_arguments(CLI::App& command, RunArguments& arguments) {
  command
      .add_option(
          "CONFIG|MODEL_DIR", arguments.config_path,
          "YAML configuration, or a checkpoint or adapter as it is, or a run (its best checkpoint)")
      ->required();
  command.add_option("JSONL", arguments.records,
                     "records to ask about; default: custom.val_jsonl of the configuration or run");
  add_overrides(command, arguments.overrides);
  command
      .add_option("--answer-format", arguments.answer_format,
                  "how answers are written; default: that of the configuration, else of the "
                  "checkpoint")
      ->check(CLI::IsMember(answer_formats().names()));
  command
      .add_option("--device", arguments.device,
                  "auto (CUDA when there is one), cpu, cuda or cuda:N")
      ->capture_default_str();
}

void add_plan_arguments(CLI::App& command, PlanArguments& arguments) {
  command
      .add_option("CONFIG|MODEL_DIR", arguments.path,
                  "YAML configuration, or a model directory (its config.json is enough)")
      ->required();
  add_overrides(command, arguments.overrides);
  command
      .add_option("--gpu-memory", arguments.gpu_memory_gib,
                  "plan for a GPU with this many GiB; default: the CPU of this machine")
      ->check(finite_range(1e-3, 1e6, "GiB"));
  command.add_option("--ranks", arguments.num_ranks, "data-parallel ranks, one device each")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      .add_option("--zero-stage", arguments.zero_stage,
                  "default: training.zero_stage; 1 shards the optimizer state over the ranks, 2 "
                  "the gradient sums too")
      ->check(CLI::Range(0, 2));
  command
      .add_option("--row-tokens", arguments.row_tokens,
                  "tokens of the longest sample; default: global_max_length, or 4096")
      ->check(CLI::Range(1, 1 << 24));
  command
      .add_option("--image-tokens", arguments.image_tokens,
                  "how many of these are image pads; default: half")
      ->check(CLI::NonNegativeNumber);
  command.add_flag("--json", arguments.json, "print one JSON object instead of tables");
}

void add_check_arguments(CLI::App& command, CheckArguments& arguments) {
  add_config_arguments(command, arguments.run);
  command
      .add_option("--gpu-memory", arguments.gpu_memory_gib,
                  "refuse a run that cannot fit a GPU with this many GiB")
      ->check(finite_range(1e-3, 1e6, "GiB"));
  command.add_option("--ranks", arguments.num_ranks, "ranks that will train together")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  CLI::Option* json = command.add_flag(
      "--json", arguments.json, "print one JSON object: problems, warnings, plan, configuration");
  command
      .add_flag("--config-only", arguments.config_only,
                "look at the configuration alone: model and data may be elsewhere")
      ->excludes(json);
  command.add_flag("--all", arguments.all_values,
                   "print every value, also those at their defaults");
}

// A run that cannot fit is refused before its values are shown.
int check_config_only(const CheckArguments& arguments) {
  const std::string warning = check_memory({.path = arguments.run.config_path,
                                            .overrides = arguments.run.overrides,
                                            .gpu_memory_gib = arguments.gpu_memory_gib,
                                            .num_ranks = arguments.num_ranks});
  const int code = run_check(arguments.run.config_path, arguments.run.overrides, std::cout,
                             arguments.all_values);
  if (!warning.empty()) std::cout << "warning: " << warning << "\n";
  return code;
}

Command add_train(CLI::App& app) {
  CLI::App* train = app.add_subcommand(
      "train", "train stage 1 or stage 2 (custom.trainer_variant: rollout_matching_sft)");
  const auto arguments = std::make_shared<RunArguments>();
  add_config_arguments(*train, *arguments);
  train->add_flag("--resume", arguments->resume,
                  "continue from the newest checkpoint of the run directory, as "
                  "training.resume_from_checkpoint: latest; without one a new run starts");
  return {train, [arguments] { return run_train(*arguments); }, /*writes_files=*/true};
}

Command add_eval(CLI::App& app) {
  CLI::App* eval = app.add_subcommand(
      "eval", "roll out, parse and match custom.val_jsonl; print precision, recall, F1");
  struct Arguments {
    RunArguments run;
    bool all_scores = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  add_asking_arguments(*eval, arguments->run);
  eval->add_flag("--all", arguments->all_scores,
                 "print every score, and tables of classes and object counts");
  return {eval, [arguments] { return run_eval(arguments->run, arguments->all_scores); },
          /*writes_files=*/true};
}

Command add_check(CLI::App& app) {
  CLI::App* check = app.add_subcommand(
      "check",
      "find everything that `train` would refuse, in seconds; print what is set and from where");
  const auto arguments = std::make_shared<CheckArguments>();
  add_check_arguments(*check, *arguments);
  return {check, [arguments] {
            return arguments->config_only ? check_config_only(*arguments)
                                          : run_preflight(*arguments, std::cout);
          }};
}

Command add_plan(CLI::App& app) {
  CLI::App* plan = app.add_subcommand("plan",
                                      "estimate how much memory a run takes, phase by phase, and "
                                      "whether it fits; needs no weights");
  const auto arguments = std::make_shared<PlanArguments>();
  add_plan_arguments(*plan, *arguments);
  return {plan, [arguments] { return run_plan(*arguments, std::cout); }};
}

Command add_rollout(CLI::App& app) {
  struct Arguments {
    RunArguments run;
    std::string split, out;
  };
  CLI::App* rollout =
      app.add_subcommand("rollout", "write each sample's rollout, parse and match as JSON lines");
  const auto arguments = std::make_shared<Arguments>();
  add_asking_arguments(*rollout, arguments->run);
  rollout
      ->add_option("--split", arguments->split,
                   "val or train; default: val if the configuration has validation data")
      ->check(CLI::IsMember({"val", "train"}));
  rollout->add_option("--out", arguments->out,
                      "file to write, replaced when all lines are there; default: rollouts.jsonl "
                      "in the run directory");
  return {rollout,
          [arguments] { return run_rollout(arguments->run, arguments->split, arguments->out); },
          /*writes_files=*/true};
}

Command add_probe(CLI::App& app) {
  struct Arguments {
    RunArguments run;
    int num_draws = 8;
    bool as_json = false;
  };
  CLI::App* probe = app.add_subcommand(
      "probe", "measure whether stage 2 can help a checkpoint, and say what to do");
  const auto arguments = std::make_shared<Arguments>();
  add_asking_arguments(*probe, arguments->run);
  probe
      ->add_option("--samples", arguments->num_draws,
                   "sampled answers for each image whose greedy answer misses an object")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  probe->add_flag("--json", arguments->as_json, "print one JSON object instead of tables");
  return {probe, [arguments] {
            return run_probe(arguments->run, arguments->num_draws, arguments->as_json);
          }};
}

Command add_coord_tokens(CLI::App& app) {
  struct Arguments {
    std::string model_dir, out_dir;
    bool untie = false;
  };
  CLI::App* coord = app.add_subcommand(
      "add-coord-tokens",
      "add the 1000 coord tokens <|coord_0|> … <|coord_999|> to a stock model directory");
  const auto arguments = std::make_shared<Arguments>();
  coord->add_option("MODEL", arguments->model_dir, "Hugging Face directory")->required();
  coord->add_option("OUT", arguments->out_dir, "directory to create")->required();
  coord->add_flag("--untie", arguments->untie, "give a model with tied embeddings a separate head");
  return {coord,
          [arguments] {
            return run_add_coord_tokens(arguments->model_dir, arguments->out_dir, arguments->untie);
          },
          /*writes_files=*/true};
}

Command add_merge(CLI::App& app) {
  CLI::App* merge = app.add_subcommand(
      "merge",
      "merge a LoRA or DoRA adapter into its base model; write a full Hugging Face directory");
  const auto arguments = std::make_shared<MergeArguments>();
  merge
      ->add_option("ADAPTER_DIR", arguments->adapter_dir,
                   "PEFT directory, or a run with tuner.train_type: lora (its best checkpoint)")
      ->required();
  merge->add_option("--out", arguments->output_dir, "directory to create")->required();
  merge->add_option("--model", arguments->model_dir,
                    "base model; default: the one named by the adapter");
  merge
      ->add_option("--dtype", arguments->dtype,
                   "float32 or bfloat16; default: the dtype of the base model's weights")
      ->check(CLI::IsMember({"float32", "bfloat16"}));
  return {merge, [arguments] { return run_merge(*arguments); }, /*writes_files=*/true};
}

Command add_doctor(CLI::App& app) {
  CLI::App* doctor = app.add_subcommand(
      "doctor", "report which rollout backends can run here, and what the others lack");
  const auto arguments = std::make_shared<DoctorArguments>();
  doctor->add_option("CONFIG", arguments->config_path,
                     "YAML configuration whose vllm.* settings are used");
  doctor->add_option("--device", arguments->device, "auto, cpu, cuda or cuda:N")
      ->capture_default_str();
  return {doctor, [arguments] { return run_doctor(*arguments, std::cout); }};
}

}  // namespace

std::vector<Command> add_run_commands(CLI::App& app) {
  return {add_train(app), add_eval(app),         add_check(app), add_plan(app),  add_rollout(app),
          add_probe(app), add_coord_tokens(app), add_merge(app), add_doctor(app)};
}

}  // namespace rematch
