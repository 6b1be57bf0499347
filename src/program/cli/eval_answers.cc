// `rematch eval JSONL --answers FILE`: scores what another program answered.
#include "program/cli/eval_answers.h"

#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/file.h"
#include "base/observe/catalog.h"
#include "base/observe/terminal.h"
#include "base/output_file.h"
#include "base/terminal_text.h"
#include "base/text.h"
#include "learn/data/dataset.h"
#include "learn/data/ordering.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/estep/answer/checkpoint_format.h"
#include "learn/estep/match/match_policy.h"
#include "learn/estep/match/observe_matching.h"
#include "learn/evaluate/answers_file.h"
#include "learn/evaluate/coco_scene.h"
#include "learn/resume/run_links.h"
#include "model/checkpoint/model_dir.h"
#include "model/text/stored_prompt.h"
#include "model/vision/patches.h"
#include "program/cli/eval_files.h"
#include "program/cli/eval_tables.h"
#include "program/config/config.h"

namespace rematch {
namespace {

constexpr double kExtraGates[] = {0.3, 0.5};  // as in `rematch eval` of a model

/// The texts that are tokens in the answers of every format.
std::vector<std::string> answer_tokens() {
  std::vector<std::string> texts{"<|im_end|>", "<|endoftext|>"};
  for (int bin = 0; bin < kNumBins; ++bin) texts.push_back(fmt::format("<|coord_{}|>", bin));
  return texts;
}

std::string set_text(const std::string& key, const std::string& text) {
  return key + "=" + python_json_string(text);
}

/// Answers to score, and their truth.
struct Task {
  std::string answers, records;
  std::string name;       ///< of the answers file
  std::string model_dir;  ///< empty: none
  std::string format;     ///< empty: the model's
};

Task task_of(const ScoredModelArguments& model, const AnswersArguments& arguments,
             Terminal& terminal) {
  const std::string name = std::filesystem::path(arguments.answers).stem().string();
  Task task{.answers = arguments.answers,
            .records = model.records,
            .name = name.empty() ? "answers" : name,
            .format = arguments.format.empty() ? model.answer_format : arguments.format};
  if (task.records.empty()) {
    task.records = model.config_path;
  } else {
    const NamedModel named = find_model(model.config_path);
    if (!named.note.empty()) terminal.say(named.note);
    task.model_dir = named.path;
  }
  if (!std::filesystem::is_directory(task.records)) return task;
  throw UserError(
      ErrorKind::kConfig,
      {.error = "the answers need records to be compared with",
       .where = task.records,
       .what = "it is a directory, and no JSONL was given after it",
       .fix = "give the truth: rematch eval data/val.jsonl --answers " + shell_word(task.answers)});
}

Settings load_settings(const Task& task, const std::vector<std::string>& more) {
  std::vector<std::string> overrides{
      set_text("model.model", task.model_dir.empty() ? "." : task.model_dir),
      "custom.trainer_variant=rollout_matching_sft",
      set_text("custom.train_jsonl", task.records),
      set_text("custom.val_jsonl", task.records),
      "custom.extra.rollout_matching.rollout_backend=native",
      "training.output_dir=output",
      set_text("training.run_name", task.name)};
  overrides.insert(overrides.end(), more.begin(), more.end());
  return load_config("", overrides).settings;
}

std::string format_name(const Task& task) {
  if (!task.format.empty()) return task.format;
  if (task.model_dir.empty()) {
    throw UserError(ErrorKind::kConfig,
                    {.error = "the format of the answers is not known",
                     .where = task.answers,
                     .what = "neither --format nor a model directory was given",
                     .fix = "add --format " + join(answer_formats().names(), ", --format ")});
  }
  if (const auto stored = read_stored_prompt(task.model_dir)) return stored->answer_format;
  return checkpoint_format(std::nullopt, task.model_dir, *Tokenizer::load(task.model_dir));
}

/// Reads and scores one answer after the other.
class AnswerScorer {
 public:
  AnswerScorer(const Settings& settings, const Task& task)
      : settings_(settings),
        labels_(LabelMatch::from(settings.match.label_match)),
        tokenizer_(Tokenizer::of_bytes(answer_tokens())),
        format_(make_answer_format(task.format, tokenizer_, task.answers)),
        at_gates_(std::size(kExtraGates)) {
    stop_ids_ = {tokenizer_->token_id("<|im_end|>").value(),
                 tokenizer_->token_id("<|endoftext|>").value()};
    // Without a model: the limits of stock checkpoints that answer in pixels.
    patches_ = {.patch_size = 14, .min_pixels = 3136, .max_pixels = 12845056, .do_resize = true};
    if (!task.model_dir.empty())
      patches_ = PatchOptions::from_model_dir(task.model_dir, settings.images);
  }

  ScoredRollout score(const Sample& sample, const std::string& text) {
    ScoredRollout one{.sample = &sample,
                      .ground_truth = order_objects(sample, settings_.data.object_ordering,
                                                    settings_.seed, /*epoch=*/0)};
    one.prompt.sample_id = sample.sample_id;
    one.prompt.where = sample.where;
    const ImageSize resized = processed_size(
        {.width_px = sample.width_px, .height_px = sample.height_px}, patches_, sample.where);
    one.prompt.resized_px = {resized.width_px, resized.height_px};
    one.rollout.response_token_ids = tokenizer_->encode(text);
    one.parsed = format_->parse(one.rollout.response_token_ids, stop_ids_, one.prompt);
    num_dropped_ += one.parsed.dropped_invalid;
    const bool is_unread =
        one.parsed.dropped_invalid > 0 || one.parsed.status == ParseStatus::kMalformed;
    if (is_unread && unread_.size() < kMostTried)
      unread_.emplace_back(one.rollout.response_token_ids, one.prompt);
    if (tried_.size() < kMostTried)
      tried_.push_back({one.rollout.response_token_ids, one.prompt, one.ground_truth});
    const std::vector<SceneObject> predictions = to_scene(one.parsed.objects);
    one.matching = observe(one, predictions, settings_.match.maskiou_gate, metrics_);
    for (size_t gate = 0; gate < at_gates_.size(); ++gate)
      observe(one, predictions, kExtraGates[gate], at_gates_[gate]);
    const auto boxes = [&](const std::vector<SceneObject>& objects) {
      return labelled_boxes(objects, sample.width_px, sample.height_px, labels_);
    };
    coco_.add(boxes(one.ground_truth), boxes(predictions));
    return one;
  }

  std::vector<std::pair<std::string, double>> values() const {
    auto values = reduce_metrics(metrics_, MetricScope::kEvaluation);
    for (size_t gate = 0; gate < at_gates_.size(); ++gate) {
      for (auto& value : reduce_gate_metrics(at_gates_[gate], kExtraGates[gate]))
        values.push_back(std::move(value));
    }
    return values;
  }

  /// Warns of entries that do not count, and names a format that reads more of such answers.
  /// @return true if there is one
  bool warn_of_unread(const Task& task, Terminal& terminal) const {
    if (num_dropped_ > 0)
      terminal.warn(fmt::format(
          "{} of the answers {} not count: without a name where {} has names, or with numbers that "
          "are not whole or beyond its scale",
          counted(num_dropped_, "entry", "entries"), num_dropped_ == 1 ? "does" : "do",
          task.format));
    const int64_t own = count_objects(*format_);
    for (const std::string& name : answer_formats().names()) {
      if (name == task.format) continue;
      const auto other = make_answer_format(name, tokenizer_, task.answers);
      const int64_t count = count_objects(*other);
      if (count <= own) continue;
      terminal.warn(fmt::format("--format {} reads {} in {} that --format {} reads {} in", name,
                                counted(count, "object"), counted(std::ssize(unread_), "answer"),
                                task.format, own));
      return true;
    }
    return false;
  }

  /// Warns where another format finds more of the truth: numbers of another unit are read as well.
  void warn_of_other_unit(const Task& task, Terminal& terminal) const {
    const int64_t own = count_matches(*format_);
    for (const std::string& name : answer_formats().names()) {
      if (name == task.format) continue;
      const int64_t found = count_matches(*make_answer_format(name, tokenizer_, task.answers));
      if (found >= kFewestMatches && found > 2 * own)
        return terminal.warn(fmt::format(
            "in the first {} --format {} finds {} of the truth and --format {} finds {}: are the "
            "numbers in the unit of {}?",
            counted(std::ssize(tried_), "answer"), name, counted(found, "object"), task.format, own,
            name));
    }
  }

  const CocoEvaluator& coco() const { return coco_; }
  const LabelMatch& labels() const { return labels_; }

 private:
  Matching observe(const ScoredRollout& one, const std::vector<SceneObject>& predictions,
                   double gate, MetricsBag& metrics) const {
    MatchSettings match = settings_.match;
    match.maskiou_gate = gate;
    Matching matching = match_objects(predictions, one.ground_truth, match);
    observe_matching(predictions, one.ground_truth, matching, match, labels_, metrics);
    observe_status(one.parsed.status, metrics);
    metrics.add("rollout/parse_dropped_invalid", one.parsed.dropped_invalid);
    return matching;
  }

  /// Objects of the answers that were not read as a whole.
  int64_t count_objects(const AnswerFormat& format) const {
    int64_t count = 0;
    for (const auto& [ids, prompt] : unread_)
      count += std::ssize(format.parse(ids, stop_ids_, prompt).objects);
    return count;
  }

  /// Objects of the truth that the first answers find when they are read in a format.
  int64_t count_matches(const AnswerFormat& format) const {
    int64_t count = 0;
    for (const Tried& answer : tried_) {
      const auto objects = to_scene(format.parse(answer.ids, stop_ids_, answer.prompt).objects);
      count += std::ssize(match_objects(objects, answer.ground_truth, settings_.match).pairs);
    }
    return count;
  }

  /// An answer and its truth.
  struct Tried {
    std::vector<TokenId> ids;
    Prompt prompt;
    std::vector<SceneObject> ground_truth;
  };

  static constexpr size_t kMostTried = 50;
  static constexpr int64_t kFewestMatches = 5;

  const Settings& settings_;
  LabelMatch labels_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<const AnswerFormat> format_;
  std::vector<TokenId> stop_ids_;
  PatchOptions patches_;
  MetricsBag metrics_;
  std::vector<MetricsBag> at_gates_;
  CocoEvaluator coco_;
  int64_t num_dropped_ = 0;
  std::vector<std::pair<std::vector<TokenId>, Prompt>> unread_;
  std::vector<Tried> tried_;
};

/// Writes the files of an evaluation and prints its scores.
void write_results(const Task& task, const Settings& settings, const AnswerScorer& scorer,
                   EvalFiles& files, const InputFiles& inputs, int64_t num_samples, bool all_scores,
                   Terminal& terminal) {
  const CocoResult found = scorer.coco().scores();
  auto values = scorer.values();
  for (auto& value : reduce_metrics(coco_metrics(found), MetricScope::kCoco))
    values.push_back(std::move(value));
  Json json;
  for (const auto& [name, value] : values) json[name] = value;
  if (!found.per_class.empty()) json["coco_per_class"] = coco_per_class_json(found);
  json["model"] = task.answers;
  json["val_jsonl"] = task.records;
  json["num_samples"] = num_samples;
  files.add_to(json, scorer.coco(), found, std::nullopt);
  const std::string path = settings.output.run_dir + "/eval_results.json";
  write_output(path, inputs, python_json(json, 2) + "\n");
  files.write(json, terminal);
  print_scores(values, json, all_scores, terminal);
  terminal.say("COCO's scores rank by the order of the answers: no probabilities are known here");
  terminal.say(fmt::format("wrote {}", path));
  terminal.say(fmt::format("wrote {} and files next to it", files.result_path()));
  terminal.say("next: rematch report " + shell_word(settings.output.run_dir));
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

int run_eval_answers(const ScoredModelArguments& model, const AnswersArguments& arguments,
                     bool all_scores) {
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  Task task = task_of(model, arguments, *terminal);
  task.format = format_name(task);
  const Settings settings = load_settings(task, model.overrides);
  InputFiles inputs{task.answers};
  inputs.add(task.records);
  if (!task.model_dir.empty()) add_model(inputs, task.model_dir);
  DatasetOptions options{.require_single_image = false, .check_image_files = false};
  if (!answer_formats().find(task.format).has_names) options.name_all = kNameless;
  const Dataset records = Dataset::load(task.records, options);
  for (const std::string& text : records.warnings()) terminal->warn(text);
  for (const Sample& sample : records.samples()) {
    for (const std::string& image : sample.image_paths) inputs.add(image);
  }
  AnswerScorer scorer(settings, task);
  const GivenAnswers answers = read_answers(task.answers, records);
  if (!arguments.answered_only) require_all_answered(answers, records, task.answers);
  const int64_t num_answered = answers.num_answered();
  if (num_answered == 0) {
    throw UserError(ErrorKind::kData, {.error = "there is no answer to score",
                                       .where = task.answers,
                                       .what = "none of its lines has a text",
                                       .fix = "give the answers of the program that was asked"});
  }
  if (num_answered < records.size())
    terminal->warn(fmt::format("{} of {} records have no answer and are left out of every score",
                               records.size() - num_answered, records.size()));
  make_directories(settings.output.run_dir);
  inputs.refuse(settings.output.run_dir + "/eval_results.json");
  EvalFiles files(settings.output.run_dir, task.name, inputs, scorer.labels());
  for (size_t i = 0; i < answers.texts.size(); ++i) {
    if (answers.texts[i]) files.add(scorer.score(records.samples()[i], *answers.texts[i]));
  }
  write_results(task, settings, scorer, files, inputs, num_answered, all_scores, *terminal);
  if (!scorer.warn_of_unread(task, *terminal)) scorer.warn_of_other_unit(task, *terminal);
  return 0;
}

}  // namespace rematch
