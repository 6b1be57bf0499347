// `rematch init MODEL JSONL`: a commented configuration to start from.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/class_names.h"
#include "learn/data/records_path.h"
#include "learn/resume/run_links.h"
#include "model/checkpoint/model_dir.h"
#include "model/families/family.h"
#include "model/text/stored_prompt.h"
#include "program/cli/command_set.h"
#include "program/cli/init_data.h"
#include "program/cli/init_schedule.h"
#include "program/cli/sample_lengths.h"

namespace rematch {
namespace {

struct InitArguments {
  std::string model, train, val, out = "rematch.yaml";
  bool stage_1 = false, stage_2 = false;
};

/// The answer format of the checkpoint, and a comment on the other choice.
std::string format_lines(const std::string& model_dir) {
  const AnswerFormatRow& format = format_of(model_dir);
  return fmt::format(
      "  # {}\n  answer_format: {}\n",
      format.has_coord_tokens
          ? "The checkpoint has coord tokens: the four numbers of a box are 4 tokens, in digits "
            "about 12."
          : "The checkpoint's own answers, in digits: the four numbers of a box are about 12 "
            "tokens.\n  # With `rematch add-coord-tokens` they are 4, but a stock model must learn "
            "these first\n  # (docs/answer_formats.md).",
      format.name);
}

int64_t rounded_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A JSON string is a double-quoted scalar of YAML.
std::string quoted(const std::string& text) { return python_json_string(text); }

/// For small sets: augmentation, as a comment (docs/small_data.md#measured).
std::string augment_lines(int64_t num_records) {
  if (num_records >= 1000) return "";
  return "# data:\n#   augment: {crop: 0.6, color: 0.3}    # varies few pictures; `rematch data "
         "show --augment` draws them (docs/small_data.md)\n\n";
}

/// Facts of the records and the model.
struct InitFacts {
  SampleLengths lengths;
  std::optional<ImageBudget> images;  ///< none: every image is small enough
  ClassPrompt classes;                ///< none for a stored prompt
};

InitFacts find_facts(const InitArguments& arguments, const Dataset& train,
                     const std::optional<Dataset>& val) {
  InitFacts facts;
  std::vector<const Dataset*> data{&train};
  if (val) data.push_back(&*val);
  facts.images = find_image_budget(data, PatchOptions::from_model_dir(arguments.model));
  if (!read_stored_prompt(arguments.model)) {
    const PromptTexts usual = format_of(arguments.model).built_in_prompt(ObjectOrdering::kSorted);
    facts.classes = class_list_prompt(train, usual.user);
  }
  ImageSettings images;
  if (facts.images) images.max_pixels = facts.images->max_pixels;
  facts.lengths = measure_lengths(train, arguments.model, facts.classes.text, images);
  if (val) {
    const SampleLengths more = measure_lengths(*val, arguments.model, facts.classes.text, images);
    facts.lengths.longest_prompt = std::max(facts.lengths.longest_prompt, more.longest_prompt);
    facts.lengths.longest_answer = std::max(facts.lengths.longest_answer, more.longest_answer);
  }
  return facts;
}

/// The section `template`; empty if there is nothing to say.
std::string template_lines(const InitFacts& facts, const std::optional<StoredPrompt>& prompt) {
  std::string text;
  if (facts.images) text += image_budget_lines(*facts.images);
  if (prompt && prompt->texts.system_prompt)
    text += fmt::format("  # As the model was asked before ({}).\n  system: {}\n",
                        kStoredPromptFile, quoted(*prompt->texts.system_prompt));
  return text.empty() ? "" : "\ntemplate:\n" + text;
}

std::string yaml_for(const InitArguments& arguments, const Dataset& train, const InitFacts& facts) {
  const SampleLengths& lengths = facts.lengths;
  const int64_t max_new_tokens =
      rounded_up(lengths.longest_answer + lengths.longest_answer / 4, 64);
  const int64_t max_length = rounded_up(lengths.longest_prompt + max_new_tokens, 64);
  std::string yaml = fmt::format(
      "# Written by `rematch init` for {} records of {}.\n"
      "# Check it with `rematch check {}`; `rematch explain KEY` says what a key means "
      "(docs/config.md).\n\n"
      "model:\n  model: {}\n\n"
      "# Tokens of a prompt with its answer. The longest here: prompt {}, true answer {} (median "
      "{}).\n"
      "global_max_length: {}\n\n"
      "training:\n  output_dir: output\n"
      "  run_name: {}    # logs and checkpoints: output/RUN_NAME, a second run RUN_NAME-2\n"
      "{}\n"
      "# tuner:\n#   train_type: lora                 # trains an adapter: a fraction of the "
      "memory (docs/adapters.md)\n#   lora_rank: 16\n\n",
      train.size(), printable(arguments.train), printable(shell_word(arguments.out)),
      quoted(arguments.model), lengths.longest_prompt, lengths.longest_answer,
      lengths.median_answer, max_length, run_name_for(arguments.train, arguments.stage_1),
      schedule_lines(init_schedule(train.size()), train.size(), !arguments.val.empty(),
                     arguments.stage_1));
  yaml += augment_lines(train.size());
  yaml += fmt::format("custom:\n  trainer_variant: {}\n  train_jsonl: {}\n",
                      arguments.stage_1 ? "sft" : "rollout_matching_sft", quoted(arguments.train));
  yaml += format_lines(arguments.model);
  yaml += arguments.val.empty()
              ? "  # val_jsonl: data/val.jsonl          # scores on data it does not train on\n"
              : fmt::format("  val_jsonl: {}\n", quoted(arguments.val));
  const std::optional<StoredPrompt> prompt = read_stored_prompt(arguments.model);
  if (prompt) yaml += fmt::format("  user_prompt: {}\n", quoted(*prompt->texts.user_prompt));
  if (facts.classes.text)
    yaml += fmt::format(
        "  # The usual prompt and the classes of {}, so that the names are known.\n"
        "  user_prompt: {}\n",
        printable(arguments.train), quoted(*facts.classes.text));
  yaml += fmt::format(
      "  extra:\n    rollout_matching:\n"
      "      rollout_backend: native        # generates with the training weights; hf, vllm: "
      "`rematch doctor`\n"
      "      max_new_tokens: {:<5}          # the longest true answer and a quarter more\n"
      "{}",
      max_new_tokens,
      arguments.stage_1 ? ""
                        : "      target_policy: rewrite         # recommended (docs/targets.md)\n");
  return yaml + template_lines(facts, prompt);
}

/// True for a checkpoint that has coord tokens and was never trained to answer with them.
bool must_learn_coord_tokens(const std::string& model_dir) {
  return format_of(model_dir).has_coord_tokens && !read_stored_prompt(model_dir);
}

int run_init(InitArguments arguments) {
  const NamedModel model = find_model(arguments.model);
  arguments.model = model.path;
  describe_model(arguments.model);
  require_records_file(arguments.train);
  if (!arguments.val.empty()) require_records_file(arguments.val);
  if (!model.note.empty()) std::cerr << model.note << "\n";
  const bool is_untaught = must_learn_coord_tokens(arguments.model);
  const bool decides = is_untaught && !arguments.stage_1 && !arguments.stage_2;
  arguments.stage_1 = arguments.stage_1 || decides;
  const Dataset train =
      Dataset::load(arguments.train, {.require_single_image = !arguments.stage_1});
  if (std::filesystem::exists(arguments.out)) {
    throw UserError(ErrorKind::kConfig, {.error = "the file exists",
                                         .where = arguments.out,
                                         .what = "`rematch init` does not overwrite",
                                         .fix = "give another name with --out, or remove it"});
  }
  std::optional<Dataset> val;
  if (!arguments.val.empty())
    val = Dataset::load(arguments.val, {.require_single_image = !arguments.stage_1});
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  for (const std::string& text : train.warnings()) terminal->warn(text);
  if (val) {
    for (const std::string& text : val->warnings()) terminal->warn(text);
  }
  for (const std::string& text : class_name_warnings(train, val ? &*val : nullptr))
    terminal->warn(text);
  const InitFacts facts = find_facts(arguments, train, val);
  if (!facts.classes.note.empty()) terminal->say(wrapped(facts.classes.note, 2));
  write_output(arguments.out, {arguments.train, arguments.val}, yaml_for(arguments, train, facts));
  if (decides)
    std::cout << wrapped(
        "stage 1, plain supervised training: this checkpoint has no rematch_prompt.json, so it was "
        "not trained to answer with coord tokens, and rollouts of such a model are malformed "
        "(--stage2 writes rollout matching all the same)\n",
        2);
  std::cout << fmt::format("wrote {}\n", arguments.out);
  std::cout << fmt::format("next: rematch check {0}; rematch train {0}\n",
                           shell_word(arguments.out));
  return 0;
}

}  // namespace

Command add_init_command(CLI::App& app) {
  CLI::App* init = app.add_subcommand(
      "init", "write a commented configuration for a model and data, without questions");
  const auto arguments = std::make_shared<InitArguments>();
  init->add_option("MODEL", arguments->model,
                   "Hugging Face directory, or a run (its best checkpoint)")
      ->required();
  init->add_option("JSONL", arguments->train, "training records")->required();
  init->add_option("--val", arguments->val, "validation records");
  init->add_option("--out", arguments->out, "file to write")->capture_default_str();
  CLI::Option* stage_1 =
      init->add_flag("--stage1", arguments->stage_1,
                     "plain supervised training, as a first stage; default for new coord tokens");
  init->add_flag("--stage2", arguments->stage_2,
                 "rollout matching; default for a checkpoint that can answer")
      ->excludes(stage_1);
  init->footer(
      "Examples:\n  rematch init base data/train.jsonl --val data/val.jsonl\n  rematch init base "
      "data/train.jsonl --stage1 --out "
      "stage1.yaml");
  return {init, [arguments] { return run_init(*arguments); }};
}

}  // namespace rematch
