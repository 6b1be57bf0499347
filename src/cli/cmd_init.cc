// `rematch init MODEL JSONL`: a commented configuration to start from.
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

#include "base/error.h"
#include "base/json.h"
#include "base/output_file.h"
#include "base/file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "cli/model_config.h"
#include "import/directory_format.h"
#include "resume/run_links.h"
#include "checkpoint/model_dir.h"
#include "cli/command_set.h"
#include "cli/init_schedule.h"
#include "cli/sample_lengths.h"
#include "estep/answer/answer_format.h"
#include "estep/answer/checkpoint_format.h"
#include "text/stored_prompt.h"

namespace rematch {
namespace {

struct InitArguments {
  std::string model, train, val, out = "rematch.yaml";
  bool stage_1 = false, stage_2 = false;
};

/// The answer format of the checkpoint, and a comment on the other choice.
std::string format_lines(const std::string& model_dir) {
  const std::string name = checkpoint_format(std::nullopt, model_dir, *Tokenizer::load(model_dir));
  const bool has_coord_tokens = answer_formats().find(name).has_coord_tokens;
  return fmt::format(
      "  # {}\n  answer_format: {}\n",
      has_coord_tokens
          ? "The checkpoint has coord tokens: the four numbers of a box are 4 tokens, in digits "
            "about 12."
          : "The checkpoint's own answers, in digits: the four numbers of a box are about 12 "
            "tokens.\n  # With `rematch add-coord-tokens` they are 4, but a stock model must learn "
            "these first\n  # (docs/answer_formats.md).",
      name);
}

int64_t rounded_up(int64_t value, int64_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

// A JSON string is a double-quoted scalar of YAML.
std::string quoted(const std::string& text) { return python_json_string(text); }

/// For small sets: augmentation, as a comment (docs/small_data.md#measured).
std::string augment_lines(size_t num_records) {
  constexpr size_t kFewRecords = 1000;
  if (num_records >= kFewRecords) return "";
  return "# data:\n#   augment: {crop: 0.6, color: 0.3}    # varies few pictures; `rematch data "
         "show "
         "--augment` draws them (docs/small_data.md)\n\n";
}

std::string yaml_for(const InitArguments& arguments, const Dataset& train,
                     const SampleLengths& lengths) {
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
      "training:\n  output_dir: output\n  run_name: {}\n{}\n"
      "# tuner:\n#   train_type: lora                 # trains an adapter: a fraction of the "
      "memory (docs/adapters.md)\n#   lora_rank: "
      "16\n\n",
      train.size(), printable(arguments.train), printable(shell_word(arguments.out)),
      quoted(arguments.model), lengths.longest_prompt, lengths.longest_answer,
      lengths.median_answer, max_length, arguments.stage_1 ? "stage1" : "stage2",
      schedule_lines(init_schedule(train.size()), train.size(), !arguments.val.empty(),
                     arguments.stage_1));
  yaml += augment_lines(static_cast<size_t>(train.size()));
  yaml += fmt::format("custom:\n  trainer_variant: {}\n  train_jsonl: {}\n",
                      arguments.stage_1 ? "sft" : "rollout_matching_sft", quoted(arguments.train));
  yaml += format_lines(arguments.model);
  yaml += arguments.val.empty()
              ? "  # val_jsonl: data/val.jsonl          # scores on data it does not train on\n"
              : fmt::format("  val_jsonl: {}\n", quoted(arguments.val));
  const std::optional<StoredPrompt> prompt = read_stored_prompt(arguments.model);
  if (prompt) yaml += fmt::format("  user_prompt: {}\n", quoted(*prompt->texts.user_prompt));
  yaml += fmt::format(
      "  extra:\n    rollout_matching:\n"
      "      rollout_backend: native        # generates with the training weights; hf, vllm: "
      "`rematch doctor`\n"
      "      max_new_tokens: {:<5}          # the longest true answer and a quarter more\n"
      "{}",
      max_new_tokens,
      arguments.stage_1 ? ""
                        : "      target_policy: rewrite         # recommended (docs/targets.md)\n");
  if (prompt && prompt->texts.system_prompt)
    yaml += fmt::format("\n# As the model was asked before ({}).\ntemplate:\n  system: {}\n",
                        kStoredPromptFile, quoted(*prompt->texts.system_prompt));
  return yaml;
}

/// True for a checkpoint that has coord tokens and was never trained to answer with them.
bool must_learn_coord_tokens(const std::string& model_dir) {
  const std::string name = checkpoint_format(std::nullopt, model_dir, *Tokenizer::load(model_dir));
  return answer_formats().find(name).has_coord_tokens && !read_stored_prompt(model_dir);
}

/// The file with "train" in the shortest name, else the first one.
std::string training_file(std::vector<std::string> files) {
  const std::string first = files.front();
  std::erase_if(files, [](const std::string& file) { return file.find("train") == file.npos; });
  const auto shortest = std::min_element(
      files.begin(), files.end(), [](const auto& a, const auto& b) { return a.size() < b.size(); });
  return shortest == files.end() ? first : *shortest;
}

/// @throws UserError (config) for a directory, naming the files in it
void require_records_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_directory(path, error)) return;
  std::vector<std::string> files;
  for (auto entry = std::filesystem::directory_iterator(path, error);
       !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (entry->path().extension() == ".jsonl")
      files.push_back(printable(shell_word(join_path(path, entry->path().filename().string()))));
  }
  std::sort(files.begin(), files.end());
  const std::string command = import_command(path);
  const std::string import =
      command.empty() ? "write one with `rematch data from-coco`, `from-yolo` or `from-voc`"
                      : "write one: `" + command + "`, then give data/train.jsonl";
  throw UserError(
      ErrorKind::kConfig,
      {.error = "the records are one JSONL file, not a directory",
       .where = path,
       .what = files.empty() ? "it is a directory without a .jsonl file"
                             : "it is a directory with " + join(files, ", "),
       .fix =
           files.empty() ? import : "give the file of training records: " + training_file(files)});
}

int run_init(InitArguments arguments) {
  require_model_first(arguments.model, arguments.train);
  const NamedModel model = find_model(arguments.model);
  arguments.model = model.path;
  require_model_dir(arguments.model);
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
  SampleLengths lengths = measure_lengths(train, arguments.model);
  if (!arguments.val.empty()) {
    const SampleLengths val =
        measure_lengths(Dataset::load(arguments.val, {.require_single_image = !arguments.stage_1}),
                        arguments.model);
    lengths.longest_prompt = std::max(lengths.longest_prompt, val.longest_prompt);
    lengths.longest_answer = std::max(lengths.longest_answer, val.longest_answer);
  }
  write_output(arguments.out, {arguments.train, arguments.val},
               yaml_for(arguments, train, lengths));
  if (decides)
    std::cout << wrapped(
        "stage 1, plain supervised training: this checkpoint has no rematch_prompt.json, so it was "
        "not trained to answer with coord tokens, and rollouts of such a model are malformed "
        "(--stage2 writes rollout matching all the same)\n",
        2);
  if (is_untaught && arguments.stage_2)
    std::cerr << wrapped(
        "warning: this checkpoint has no rematch_prompt.json: if it was not trained to answer with "
        "coord tokens, all its rollouts are malformed; `rematch probe` tells, --stage1 teaches "
        "it\n",
        2);
  std::cout << fmt::format("wrote {0}\nnext: rematch check {1}; rematch train {1}\n", arguments.out,
                           shell_word(arguments.out));
  return 0;
}

}  // namespace

std::vector<Command> add_init_command(CLI::App& app) {
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
  return {{init, [arguments] { return run_init(*arguments); }}};
}

}  // namespace rematch
