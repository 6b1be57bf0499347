// `rematch init MODEL JSONL`: a commented configuration to start from.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "learn/augment/absent_classes.h"
#include "learn/data/class_names.h"
#include "learn/data/class_prompt.h"
#include "learn/data/order_score.h"
#include "learn/data/records_path.h"
#include "learn/estep/answer/checkpoint_format.h"
#include "learn/estep/sample_lengths.h"
#include "model/families/family.h"
#include "program/assembly/ask.h"
#include "program/assembly/open.h"
#include "program/cli/command_set.h"
#include "program/cli/init_data.h"
#include "program/cli/standard_output.h"

namespace rematch {
namespace {

struct InitArguments {
  std::string model, train, val, out = "rematch.yaml";
  bool stage_1 = false, stage_2 = false;
};

/// The answer format of a checkpoint.
const AnswerFormatRow& format_of(const std::string& model_dir) {
  return answer_formats().find(
      checkpoint_format(std::nullopt, model_dir, *Tokenizer::load(model_dir)));
}

/// The answer format, and a comment on the other choice; in digits the order of the truth.
/// @param has_order  the checkpoint knows its own
std::string format_lines(const AnswerFormatRow& format, bool has_order) {
  return fmt::format(
      "  # {}\n  answer_format: {}\n{}",
      format.has_coord_tokens
          ? "The checkpoint has coord tokens: the four numbers of a box are 4 tokens, in digits "
            "about 12."
          : "The checkpoint's own answers, in digits: the four numbers of a box are about 12 "
            "tokens.\n  # With `rematch add-coord-tokens` they are 4, but a stock model must learn "
            "these first\n  # (docs/answer_formats.md).",
      format.name,
      has_order ? "  object_ordering: own\n"
      : format.has_coord_tokens
          ? ""
          : "  # The order in which the checkpoint lists objects, found in 300 answers "
            "(docs/order.md);\n  # sorted: from top to bottom.\n  object_ordering: own\n");
}

int64_t rounded_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A JSON string is a double-quoted scalar of YAML.
std::string quoted(const std::string& text) { return python_json_string(text); }

/// For small sets: augmentation, as a comment (docs/small_data.md#measured).
std::string augment_lines(int64_t num_records) {
  if (num_records >= 1000) return "";
  return "# data:\n#   augment: {crop: 0.6, color: 0.3}    # varies few pictures "
         "(docs/small_data.md)\n\n";
}

/// For prompts that list classes: absent ones, as a comment.
std::string absent_lines(const Dataset& train) {
  if (count_listing(train.samples()).second == 0) return "";
  return "  # absent_classes: {share: 0.5}    # where the truth has every object "
         "(docs/absent_classes.md)\n";
}

/// Lengths in tokens over the data.
struct SampleLengths {
  int64_t longest_prompt = 0;  ///< with its image
  int64_t longest_answer = 0;
};

/// Facts of the records and the model.
struct InitFacts {
  const AnswerFormatRow& format;
  SampleLengths lengths = {};
  std::optional<ImageBudget> images = {};  ///< none: every image is small enough
  ClassPrompt classes = {};                ///< none for a stored prompt
};

/// The files of the model, as a run with these facts uses them.
ModelFiles open_files(const Checkpoint& checkpoint, const InitFacts& facts, Terminal& terminal) {
  Settings settings = settings_to_ask(checkpoint, {});
  settings.variant = TrainerVariant::kSft;
  settings.rollouts = false;  // no backend is needed
  if (facts.images) settings.images.max_pixels = facts.images->max_pixels;
  if (facts.classes.text) settings.prompt.user_prompt = facts.classes.text;
  Report report(terminal);
  return *open_model(settings, Use::kEvaluate, report);
}

/// Reads no image.
SampleLengths measure_lengths(const std::vector<Dataset>& data, const ModelFiles& files) {
  SampleLengths lengths;
  for (const Dataset& records : data) {
    for (const SampleLength& each : measure_samples(records, *files.prompts, *files.format,
                                                    {.patches = files.patches}, [](int64_t) {})) {
      lengths.longest_answer = std::max<int64_t>(lengths.longest_answer, each.answer_len);
      lengths.longest_prompt = std::max<int64_t>(lengths.longest_prompt, each.prompt_len);
    }
  }
  return lengths;
}

/// @param data  the training records first
InitFacts find_facts(const Checkpoint& checkpoint, const std::vector<Dataset>& data,
                     Terminal& terminal) {
  InitFacts facts{.format = format_of(checkpoint.path)};
  facts.images = find_image_budget(data, PatchOptions::from_model_dir(checkpoint.path));
  if (checkpoint.prompt)
    terminal.warn_all(
        unlisted_classes(data.front(), checkpoint.prompt->texts.user_prompt.value_or("")));
  else
    facts.classes =
        class_list_prompt(data.front(), facts.format.built_in_prompt(ObjectOrdering::kSorted).user);
  facts.lengths = measure_lengths(data, open_files(checkpoint, facts, terminal));
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

std::string yaml_for(const InitArguments& arguments, const Dataset& train, const InitFacts& facts,
                     const std::optional<StoredPrompt>& prompt) {
  const SampleLengths& lengths = facts.lengths;
  const int64_t max_new_tokens =
      rounded_up(lengths.longest_answer + lengths.longest_answer / 4, 64);
  const int64_t max_length = rounded_up(lengths.longest_prompt + max_new_tokens, 64);
  std::string yaml = fmt::format(
      "# Written by `rematch init` for {} records of {}.\n"
      "# Check it with `rematch check {}`; `rematch explain KEY` says what a key means.\n\n"
      "model:\n  model: {}\n\n"
      "# Tokens of a prompt with its answer. The longest here: prompt {}, true answer {}.\n"
      "global_max_length: {}\n\n"
      "training:\n  output_dir: output\n"
      "  run_name: {}    # logs and checkpoints: output/RUN_NAME, a second run RUN_NAME-2\n"
      "{}\n"
      "# tuner:\n#   train_type: lora                 # an adapter: a fraction of the "
      "memory (docs/adapters.md)\n#   lora_rank: 16\n\n",
      train.size(), printable(arguments.train), printable(shell_word(arguments.out)),
      quoted(arguments.model), lengths.longest_prompt, lengths.longest_answer, max_length,
      arguments.stage_1 ? "stage1" : "stage2",
      schedule_lines(train.size(), !arguments.val.empty(), arguments.stage_1));
  yaml += augment_lines(train.size());
  yaml += fmt::format("custom:\n  trainer_variant: {}\n  train_jsonl: {}\n",
                      arguments.stage_1 ? "sft" : "rollout_matching_sft", quoted(arguments.train));
  yaml += format_lines(facts.format, path_exists(join_path(arguments.model, kOrderFile)));
  yaml += arguments.val.empty()
              ? "  # val_jsonl: data/val.jsonl          # scores on data it does not train on\n"
              : fmt::format("  val_jsonl: {}\n", quoted(arguments.val));
  yaml += absent_lines(train);
  if (prompt) yaml += fmt::format("  user_prompt: {}\n", quoted(*prompt->texts.user_prompt));
  if (facts.classes.text)
    yaml += fmt::format(
        "  # The usual prompt and the classes of {}.\n"
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

/// @throws UserError (config)
void refuse_to_overwrite(const std::string& path) {
  if (!path_exists(path)) return;
  throw config_error({.error = "the file exists",
                      .where = path,
                      .what = "`rematch init` does not overwrite",
                      .fix = "give another name with --out, or remove it"});
}

int run_init(InitArguments arguments) {
  const Checkpoint checkpoint = find_checkpoint(arguments.model);
  arguments.model = checkpoint.path;
  describe_model(arguments.model);
  Strings paths{arguments.train};
  if (!arguments.val.empty()) paths.push_back(arguments.val);
  for (const std::string& path : paths) require_records_file(path);
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  if (!checkpoint.note.empty()) terminal->say(checkpoint.note);
  const bool is_untaught = format_of(arguments.model).has_coord_tokens && !checkpoint.prompt;
  const bool decides = is_untaught && !arguments.stage_1 && !arguments.stage_2;
  arguments.stage_1 = arguments.stage_1 || decides;
  std::vector<Dataset> records;
  for (const std::string& path : paths) {
    records.push_back(Dataset::load(path, {.require_single_image = !arguments.stage_1}));
    terminal->warn_all(records.back().warnings());
  }
  refuse_to_overwrite(arguments.out);
  records.front().offer_classes();
  const Dataset &train = records.front(), &last = records.back();
  terminal->warn_all(class_name_warnings(train, arguments.val.empty() ? nullptr : &last));
  const InitFacts facts = find_facts(checkpoint, records, *terminal);
  if (!facts.classes.note.empty()) terminal->say(wrapped(facts.classes.note, 2));
  write_output(arguments.out, {arguments.train, arguments.val},
               yaml_for(arguments, train, facts, checkpoint.prompt));
  if (decides)
    std::cout << wrapped(
        "stage 1, plain supervised training: this checkpoint has no rematch_prompt.json, so it was "
        "not trained to answer with coord tokens, and rollouts of such a model are malformed "
        "(--stage2 writes rollout matching all the same)\n",
        2);
  print("wrote {}\n", arguments.out);
  print("next: rematch check {0}; rematch train {0}\n", shell_word(arguments.out));
  return 0;
}

}  // namespace

Command add_init_command(CLI::App& app) {
  const auto [command, init, arguments] = make_command(
      app, "init", "write a commented configuration for a model and data, without questions",
      run_init,
      {"base data/train.jsonl --val data/val.jsonl",
       "base data/train.jsonl --stage1 --out stage1.yaml"});
  init.add_option("MODEL", arguments.model,
                  "Hugging Face directory, or a run (its best checkpoint)")
      ->required();
  init.add_option("JSONL", arguments.train, "training records")->required();
  init.add_option("--val", arguments.val, "validation records");
  init.add_option("--out", arguments.out, "file to write")->capture_default_str();
  CLI::Option* stage_1 =
      init.add_flag("--stage1", arguments.stage_1,
                    "plain supervised training, as a first stage; default for new coord tokens");
  init.add_flag("--stage2", arguments.stage_2,
                "rollout matching; default for a checkpoint that can answer")
      ->excludes(stage_1);
  return command;
}

}  // namespace rematch
