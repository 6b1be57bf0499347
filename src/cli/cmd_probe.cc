#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "assembly/rollouts.h"
#include "assembly/session.h"
#include "base/error.h"
#include "base/terminal_text.h"
#include "cli/commands.h"
#include "cli/model_config.h"
#include "ranks/ranks.h"
#include "evaluate/probe.h"

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
          {"truncated", "truncated answers", numbers.truncated()},
          {"malformed", "malformed answers", numbers.malformed()},
          {"order_agreement", "neighbours in sorted order", numbers.order_agreement()},
          {"missing", "missing objects", numbers.missing()},
          {"found_by_samples", "of these found by samples", numbers.found()}};
}

void print_json(Terminal& terminal, const ProbeNumbers& numbers, const ProbeVerdict& verdict,
                const Settings& settings) {
  Json json{{"model", settings.model.directory},
            {"samples", numbers.num_draws},
            {"num_images", numbers.total().num_images}};
  for (const auto& [key, label, value] : measurements(numbers))
    json["measured"][key] = value ? Json(*value) : Json();
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
  json["verdict"] = {{"action", name_of(verdict.action)},
                     {"headline", verdict.headline},
                     {"reasons", verdict.reasons},
                     {"steps", verdict.steps}};
  terminal.print(python_json(json, 2));
}

void print_text(Terminal& terminal, const ProbeNumbers& numbers, const ProbeVerdict& verdict) {
  std::vector<std::vector<std::string>> measured{{"score", "value"}};
  for (const auto& [key, label, value] : measurements(numbers))
    measured.push_back({label, value ? fmt::format("{:.3f}", *value) : "-"});
  terminal.table(measured);
  terminal.print("");
  const std::string found = fmt::format("found by {} samples", numbers.num_draws);
  std::vector<std::vector<std::string>> rows{{"objects", "images", "missing", found, "repeated"}};
  for (const ProbeBucket& bucket : numbers.by_count) {
    rows.push_back({range_text(bucket), fmt::format("{}", bucket.num_images),
                    share_text(bucket.num_missing, bucket.num_truths),
                    share_text(bucket.num_found, bucket.num_missing),
                    share_text(bucket.num_repeated, bucket.num_predictions)});
  }
  terminal.table(rows);
  terminal.print("\n" + wrapped("verdict: " + verdict.headline, 2));
  for (const std::string& reason : verdict.reasons)
    terminal.print(wrapped("  because " + reason, 4));
  for (const std::string& step : verdict.steps) terminal.print(wrapped("  - " + step, 4));
}

}  // namespace

int run_probe(const RunArguments& arguments, int num_draws, bool as_json) {
  require_alone("rematch probe");
  AskedModel asked = load_asked_model(arguments);
  ConfigResult& result = asked.config;
  Settings& settings = result.settings;
  if (!settings.data.val_jsonl) {
    throw UserError(ErrorKind::kConfig, {.error = "a probe needs validation data",
                                         .where = arguments.config_path,
                                         .what = "custom.val_jsonl is not set",
                                         .fix = "set custom.val_jsonl"});
  }
  const std::unique_ptr<Terminal> terminal = Terminal::standard();
  if (!asked.note.empty()) terminal->say(asked.note);
  for (const Warning& warning : result.warnings)
    terminal->warn(warning.text + " (" + warning.where + ")");
  const bool sorted = settings.data.object_ordering == ObjectOrdering::kSorted;
  const double temperature =
      settings.generation.temperature > 0 ? settings.generation.temperature : 1.0;
  const Session session(settings, arguments.device, {.val_data = true, .rollouts = true}, alone(),
                        *terminal);
  asked.load_adapter(session);
  // Prompts are made; from here on the order is that of the scorer alone, which must not change
  // between draws.
  settings.data.object_ordering = ObjectOrdering::kSorted;

  Probe probe;
  const auto with_engine = [&](double engine_temperature, const auto& measure) {
    settings.generation.temperature = engine_temperature;
    const Rollouts rollouts = make_rollouts(session);
    const int batch_size =
        std::max(settings.evaluation.per_device_eval_batch_size, settings.generation.batch_size);
    measure(Probe::Answers{
        .scorer = *rollouts.val_scorer, .source = rollouts.source(), .batch_size = batch_size});
  };
  with_engine(0.0,
              [&](const Probe::Answers& answers) { probe.measure_greedy(answers, *terminal); });
  with_engine(temperature, [&](const Probe::Answers& answers) {
    probe.measure_draws(answers, num_draws, *terminal);
  });

  const ProbeNumbers numbers = probe.numbers();
  const ProbeVerdict verdict = judge(numbers, sorted);
  if (as_json) {
    print_json(*terminal, numbers, verdict, settings);
  } else {
    print_text(*terminal, numbers, verdict);
  }
  return 0;
}

}  // namespace rematch
