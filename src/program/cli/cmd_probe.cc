// `rematch probe CONFIG|MODEL_DIR [JSONL]`
#include <fmt/core.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>

#include "base/output_file.h"
#include "base/terminal_text.h"
#include "learn/estep/answer/answer_format.h"
#include "learn/evaluate/probe.h"
#include "program/assembly/engine.h"
#include "program/assembly/parts.h"
#include "program/assembly/rank_process.h"
#include "program/cli/arguments.h"
#include "program/cli/command_set.h"
#include "tools/monitor/order_sheet.h"

namespace rematch {
namespace {

std::string range_text(const ProbeBucket& bucket) {
  return bucket.min_objects == bucket.max_objects
             ? fmt::format("{}", bucket.min_objects)
             : fmt::format("{}-{}", bucket.min_objects, bucket.max_objects);
}

std::string share_text(int64_t part, int64_t whole) {
  return whole == 0 ? "-"
                    : fmt::format("{:.1f}%",
                                  100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

/// A measured number; without a value where nothing was there to measure.
struct Measured {
  const char *key, *label;  ///< for --json, and as `rematch eval` says it
  std::optional<double> value;
};

/// In the order in which they are shown.
std::vector<Measured> measurements(const ProbeNumbers& numbers) {
  return {{"f1_iou50", "F1 @ IoU 0.5", numbers.f1_50()},
          {"matched_maskiou_mean", "mean IoU of matches", numbers.matched_iou()},
          {"label_accuracy", "label accuracy of matches", numbers.label_accuracy()},
          {"pred_per_gt", "predictions per truth", numbers.pred_per_gt()},
          {"duplicates", "repeated predictions", numbers.duplicates()},
          {"absent_answered", "absent classes answered",
           numbers.num_absent > 0 ? std::optional(numbers.absent_answered()) : std::nullopt},
          {"truncated", "truncated answers", numbers.truncated()},
          {"malformed", "malformed answers", numbers.malformed()},
          {"order_agreement", "neighbours in sorted order", numbers.order_agreement()},
          {"missing", "missing objects", numbers.missing()},
          {"found_by_samples", "of these found by samples", numbers.found()}};
}

void print_json(Terminal& terminal, const ProbeNumbers& numbers, const OrderScore& order,
                const ProbeVerdict& verdict, const Settings& settings) {
  Json json{{"model", settings.model.directory},
            {"samples", numbers.num_draws},
            {"num_images", numbers.total().num_images}};
  for (const auto& [key, label, value] : measurements(numbers))
    json["measured"][key] = value ? Json(*value) : Json();
  if (order.is_found) json["measured"]["order"] = order.name;
  json["by_object_count"] = Json::array();
  for (const ProbeBucket& bucket : numbers.by_count) {
    json["by_object_count"].push_back({{"min_objects", bucket.min_objects},
                                       {"max_objects", bucket.max_objects},
                                       {"images", bucket.num_images},
                                       {"objects", bucket.num_truths},
                                       {"predictions", bucket.num_predictions},
                                       {"missing", bucket.num_missing},
                                       {"found_by_samples", bucket.num_found},
                                       {"repeated", bucket.num_repeated}});
  }
  json["verdict"] = {{"action", name_of(verdict.action)}, {"headline", verdict.headline}};
  terminal.print(python_json(json, 2));
}

void print_text(Terminal& terminal, const ProbeNumbers& numbers, const OrderScore& order,
                const ProbeVerdict& verdict) {
  std::vector<Strings> measured{{"score", "value"}};
  for (const auto& [key, label, value] : measurements(numbers))
    measured.push_back({label, value ? fmt::format("{:.3f}", *value) : "-"});
  terminal.table(measured);
  terminal.print("");
  const std::string found = fmt::format("found by {} samples", numbers.num_draws);
  std::vector<Strings> rows{{"objects", "images", "missing", found, "repeated"}};
  for (const ProbeBucket& bucket : numbers.by_count) {
    rows.push_back({range_text(bucket), fmt::format("{}", bucket.num_images),
                    share_text(bucket.num_missing, bucket.num_truths),
                    share_text(bucket.num_found, bucket.num_missing),
                    share_text(bucket.num_repeated, bucket.num_predictions)});
  }
  terminal.table(rows);
  terminal.print("\n" + wrapped("order: " + order_text(order), 2));
  terminal.print("\n" + wrapped("verdict: " + verdict.headline, 2));
}

struct ProbeArguments : AskArguments {
  int num_draws = 8;
  bool as_json = false;
  std::string sheet_path;  ///< empty = no picture
};

/// The order of the greedy answers.
struct AnswerOrder {
  std::vector<Objects> answers;
  OrderSheet sheet;

  void add(const ScoredRollout& rollout) {
    answers.push_back(to_scene(rollout.parsed.objects));
    sheet.add(rollout);
  }
};

/// Measures the checkpoint of a job: greedy answers, then draws where these miss an object.
Probe measure(const Job& job, int num_draws, AnswerOrder& order) {
  const Settings& settings = job.settings();
  const std::shared_ptr<Model> model = load_model(job);
  RolloutScorer::Options options = scoring_options(job);
  if (options.ordering.kind == ObjectOrdering::kRandom)  // must not change between draws
    options.ordering = ObjectOrdering::kSorted;
  const auto with_engine = [&](double temperature, const auto& pass) {
    GenerationSettings generation = settings.generation;
    generation.temperature = temperature;
    const Engine engine = start_engine(job, model, generation);
    const RolloutScorer scorer = make_scorer(job, *job.data.val, options, engine);
    pass(Probe::Answers{
        .scorer = scorer, .source = engine.source(), .batch_size = engine.batch_size});
  };
  Probe probe;
  with_engine(0.0, [&](const Probe::Answers& answers) {
    probe.measure_greedy(answers, job.terminal,
                         [&](const ScoredRollout& rollout) { order.add(rollout); });
  });
  const double temperature = settings.generation.temperature;
  with_engine(temperature > 0 ? temperature : 1.0, [&](const Probe::Answers& answers) {
    probe.measure_draws(answers, num_draws, job.terminal);
  });
  return probe;
}

int run_probe(const ProbeArguments& arguments) {
  require_alone("rematch probe");
  JobSource source = ask_about_records(arguments.asked);
  RankProcess process(World{}, source.config, arguments.device);
  const Job job = open_job(std::move(source), Use::kAnswer, process.place());
  std::optional<OutputFile> sheet;
  if (!arguments.sheet_path.empty()) sheet.emplace(arguments.sheet_path, job.inputs());
  AnswerOrder answered;
  const Probe probe = measure(job, arguments.num_draws, answered);
  ProbeNumbers numbers = probe.numbers();
  const OrderScore order = fit_order(std::move(answered.answers));
  const ObjectOrdering ordering = job.settings().data.object_ordering;
  if (ordering == ObjectOrdering::kOwn && order.is_found)
    numbers.num_neighbours = 0;  // the training does not sort
  const bool sorted = ordering != ObjectOrdering::kRandom;
  const bool in_digits = !answer_formats().find(job.files.format_name).has_coord_tokens;
  const ProbeVerdict verdict =
      judge(numbers, sorted, in_digits, order.is_found || order.has_few_pairs());
  if (arguments.as_json) {
    print_json(job.terminal, numbers, order, verdict, job.settings());
  } else {
    print_text(job.terminal, numbers, order, verdict);
  }
  if (sheet && answered.sheet.empty()) {
    job.terminal.warn("no answer has enough objects to draw: " + arguments.sheet_path +
                      " was not written");
  } else if (sheet) {
    sheet->write(answered.sheet.png());
    sheet->commit();
    job.terminal.say("order of truth and answers drawn in " + arguments.sheet_path);
  }
  return 0;
}

}  // namespace

Command add_probe_command(CLI::App& app) {
  const auto [command, probe, arguments] = make_command(
      app, "probe", "measure whether stage 2 can help a checkpoint, and say what to do", run_probe,
      {"my.yaml", "my.yaml --samples 16 --json"});
  add_ask_arguments(probe, arguments);
  probe
      .add_option("--samples", arguments.num_draws,
                  "sampled answers for each image whose greedy answer misses an object")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  probe
      .add_option("--sheet", arguments.sheet_path,
                  "draw six pictures with truth and answer, numbered in their order, to this PNG")
      ->check(file_ending(".png"));
  probe.add_flag("--json", arguments.as_json, "print one JSON object instead of tables");
  return command;
}

}  // namespace rematch
