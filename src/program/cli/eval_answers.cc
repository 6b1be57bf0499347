// `rematch eval JSONL --answers FILE`: scores what another program answered.
#include "program/cli/eval_answers.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/first_few.h"
#include "base/observe/terminal.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/estep/answer/checkpoint_format.h"
#include "learn/evaluate/other_formats.h"
#include "model/checkpoint/model_dir.h"
#include "model/vision/patches.h"
#include "program/cli/eval_output.h"
#include "tools/records/answers_file.h"
#include "tools/records/record_file.h"

namespace rematch {
namespace {

/// The texts that are tokens in the answers of every format.
Strings answer_tokens() {
  Strings texts{"<|im_end|>", "<|endoftext|>"};
  for (int bin = 0; bin < kNumBins; ++bin) texts.push_back(fmt::format("<|coord_{}|>", bin));
  return texts;
}

/// Answers to score, and their truth.
struct Task {
  std::string answers, records;
  std::string name;  ///< of the answers file
  Checkpoint model;  ///< unset: none
  Settings settings;
  std::string format;
};

std::string format_name(const Task& task) {
  if (task.settings.data.answer_format) return *task.settings.data.answer_format;
  if (!task.model.path.empty())
    return checkpoint_format(std::nullopt, task.model.path, *Tokenizer::load(task.model.path));
  throw config_error({.error = "the format of the answers is not known",
                      .where = task.answers,
                      .what = "neither --format nor a model directory was given",
                      .fix = "add --format " + join(answer_formats().names(), ", --format ")});
}

Task task_of(Asked asked, const AnswersArguments& arguments, Terminal& terminal) {
  if (asked.records.empty()) asked.records = std::exchange(asked.model, "");
  if (!arguments.format.empty()) asked.answer_format = arguments.format;
  const std::string name = std::filesystem::path(arguments.answers).stem().string();
  Task task{.answers = arguments.answers,
            .records = asked.records,
            .name = name.empty() ? "answers" : name};
  if (!asked.model.empty()) task.model = find_checkpoint(asked.model);
  if (!task.model.note.empty()) terminal.say(task.model.note);
  if (is_dir(task.records)) {
    throw config_error({.error = "the answers need records to be compared with",
                        .where = task.records,
                        .what = "it is a directory, and no JSONL was given after it",
                        .fix = "give the truth: rematch eval data/val.jsonl --answers " +
                               shell_word(task.answers)});
  }
  Settings settings = settings_to_ask(task.model, asked);
  if (task.model.path.empty()) settings.model.directory = ".";
  settings.output = {.run_name = task.name};
  task.settings = load_config("", asked.overrides, 1, settings).settings;
  task.format = format_name(task);
  return task;
}

/// The records with an answer.
/// @throws UserError (data) if one has none, unless that is accepted, or all
Dataset answered_records(const Dataset& records, const GivenAnswers& answers, const Task& task,
                         bool answered_only, Terminal& terminal) {
  if (!answered_only) require_all_answered(answers, records, task.answers);
  const int64_t num_answered = answers.num_answered();
  if (num_answered == 0) {
    throw data_error({.error = "no answer can be scored",
                      .where = task.answers,
                      .what = "none of its lines has a text",
                      .fix = "give the file of a program's answers"});
  }
  if (num_answered < records.size()) {
    Strings failed;
    for (const auto& [record, why] : answers.failed) failed.push_back(why);
    terminal.warn(fmt::format("{} of {} records have no answer and are left out of every score{}",
                              records.size() - num_answered, records.size(),
                              failed.empty() ? "" : "; failed: " + first_few(failed)));
  }
  if (!answers.cut.empty())
    terminal.warn(fmt::format(
        "{} without content count as answers that cannot be read (refused, or cut while thinking: "
        "allow more tokens, or turn thinking off): {}",
        counted(std::ssize(answers.cut), "answer"), first_few(answers.cut)));
  std::vector<int64_t> unanswered;
  for (size_t i = 0; i < answers.texts.size(); ++i) {
    if (!answers.texts[i]) unanswered.push_back(static_cast<int64_t>(i));
  }
  return records.copy_without(unanswered);
}

/// The file of answers in place of a model.
class AnswersEngine : public RolloutEngine {
 public:
  AnswersEngine(const Dataset& records, const GivenAnswers& answers, const Tokenizer& tokenizer)
      : tokenizer_(tokenizer) {
    for (size_t i = 0; i < answers.texts.size(); ++i) {
      if (answers.texts[i]) texts_[records.samples()[i].sample_id] = *answers.texts[i];
    }
  }

  void sync_weights(int64_t) override {}
  std::vector<Rollout> generate(const std::vector<Prompt>& prompts,
                                const std::function<void(int)>&) override {
    std::vector<Rollout> rollouts;
    for (const Prompt& prompt : prompts)
      rollouts.push_back({.sample_id = prompt.sample_id,
                          .response_token_ids = tokenizer_.encode(texts_.at(prompt.sample_id))});
    return rollouts;
  }
  void release() override {}

 private:
  const Tokenizer& tokenizer_;
  std::map<int64_t, std::string> texts_;  ///< by sample_id
};

RolloutScorer::Options scoring_options(const Task& task, const Tokenizer& tokenizer) {
  const Settings& settings = task.settings;
  // Without a model: the limits of stock checkpoints that answer in pixels.
  PatchOptions patches{
      .patch_size = 14, .min_pixels = 3136, .max_pixels = 12845056, .do_resize = true};
  if (!task.model.path.empty()) {
    patches = PatchOptions::from_model_dir(task.model.path, settings.images);
  } else {
    patches.min_pixels = settings.images.min_pixels.value_or(patches.min_pixels);
    patches.max_pixels = settings.images.max_pixels.value_or(patches.max_pixels);
  }
  return {.match = settings.match,
          .labels = LabelMatch::from(settings.match.label_match),
          .ordering = settings.data.object_ordering,
          .seed = settings.seed,
          .patches = patches,
          .stop_ids = {tokenizer.token_id("<|im_end|>").value(),
                       tokenizer.token_id("<|endoftext|>").value()},
          .usual_prompt = settings.prompt.user_prompt.value_or("")};
}

/// The unit in which the numbers are read.
std::string unit_text(const Task& task, const PatchOptions& patches) {
  if (answer_formats().find(task.format).has_coord_tokens) return "";
  if (!answers_in_pixels(task.format)) return "numbers    thousandths of the image's sides";
  return fmt::format(
      "numbers    pixels of the image resized to multiples of {} and {} to {} pixels{}",
      patches.side_multiple_px(), patches.min_pixels, patches.max_pixels,
      task.model.path.empty() ? ", as stock checkpoints see it; a server with another limit: "
                                "--set template.max_pixels=N"
                              : " (" + task.model.path + ")");
}

Dataset read_records(const Task& task, InputFiles& inputs, Terminal& terminal) {
  DatasetOptions options{.require_single_image = false, .check_image_files = false};
  if (!answer_formats().find(task.format).has_names) options.name_all = kNameless;
  Dataset records = Dataset::load(task.records, options);
  terminal.warn_all(records.warnings());
  add_images(inputs, records.samples());
  return records;
}

}  // namespace

void add_answers_options(CLI::App& eval, AnswersArguments& arguments) {
  CLI::Option* answers =
      eval.add_option("--answers", arguments.answers,
                      "score the answers in these JSON lines (image or id, and text) of any other "
                      "program: `rematch eval JSONL --answers FILE --format NAME`; needs no model");
  eval.add_option("--format", arguments.format, "with --answers: how they are written")
      ->check(CLI::IsMember(answer_formats().names()))
      ->needs(answers);
  eval.add_flag("--answered-only", arguments.answered_only,
                "with --answers: leave out records without an answer; default: an error")
      ->needs(answers);
}

int run_eval_answers(const Asked& asked, const AnswersArguments& arguments, bool all_scores) {
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  const Task task = task_of(asked, arguments, *terminal);
  InputFiles inputs{task.answers, task.records};
  if (!task.model.path.empty()) add_model(inputs, task.model.path);
  const Dataset all = read_records(task, inputs, *terminal);
  const auto tokenizer = Tokenizer::of_bytes(answer_tokens());
  const auto format = make_answer_format(task.format, tokenizer, task.answers);
  const RolloutScorer::Options options = scoring_options(task, *tokenizer);
  if (const std::string unit = unit_text(task, options.patches); !unit.empty())
    terminal->say(wrapped(unit, 11));
  const GivenAnswers answers = read_answers(task.answers, all);
  const Dataset records = answered_records(all, answers, task, arguments.answered_only, *terminal);
  EvalOutput output({.model = task.answers,
                     .name = task.name,
                     .run_dir = task.settings.output.run_dir,
                     .records = records,
                     .inputs = std::move(inputs),
                     .labels = options.labels},
                    *terminal);
  OtherFormats others(task.format, tokenizer, options);
  AnswersEngine engine(all, answers, *tokenizer);
  Evaluation evaluation(Evaluation::Answers{{records, *format, options}, {engine}}, std::nullopt,
                        records.size(),
                        {.settings = task.settings.evaluation, .extra_gates = kExtraGates});
  EvaluationResult result = evaluation.run(*terminal, [&](const ScoredRollout& answer) {
    output.add(answer);
    others.add(answer);
  });
  std::erase_if(result.values, [](const auto& value) {  // of the program that answered
    return value.first == "eval_runtime" || value.first == "eval_samples_per_second";
  });
  output.write(std::move(result), all_scores);
  others.warn(*terminal);
  return 0;
}

}  // namespace rematch
