// Rules for evaluations: their cadence, their data and their metric.
#include <fmt/core.h>

#include <algorithm>

#include "base/observe/catalog.h"
#include "base/text.h"
#include "program/config/draft.h"

namespace rematch {
namespace {

void apply_strategy_rules(Draft& config) {
  const std::string when = "training.eval_strategy";
  const std::string save = "training.save_strategy";
  const bool has_data = !config.is_null("custom.val_jsonl");
  const bool best = config.text(save) == "best";
  if (config.is_null(when) && !has_data) {
    config.derive(when, "no", "custom.val_jsonl: null");
  } else if (config.is_null(when)) {
    config.derive(when, best ? KeyValue("steps") : config.value(save),
                  best ? "training.save_strategy: best" : save);
  } else if (config.text(when) != "no" && !has_data) {
    config.problem(fmt::format("`{}: {}` has no data", when, config.text(when)), when,
                   "`custom.val_jsonl` is not set",
                   "set `custom.val_jsonl`, or `training.eval_strategy: no`");
  }
  if (best && config.text(when) == "no") {
    config.problem("`training.save_strategy: best` needs evaluation", save,
                   fmt::format("`{}` is no ({})", when, config.origin(when)),
                   "set `custom.val_jsonl` and `training.eval_strategy: steps`, or set "
                   "`training.save_strategy: steps`");
  }
  if (config.is_null("training.eval_steps"))
    config.derive("training.eval_steps", config.value("training.save_steps"),
                  "training.save_steps");
}

/// Checks `eval_on_start`, `stop_on_harm` and `early_stopping_patience`; runs after
/// apply_strategy_rules().
void apply_health_rules(Draft& config) {
  const std::string start = "training.eval_on_start", stop = "training.stop_on_harm",
                    when = "training.eval_strategy";
  if (config.is_null(start)) config.derive(start, config.boolean(stop), stop);
  const bool evaluates = config.text(when) != "no";
  for (const std::string& key : {start, stop, std::string("training.early_stopping_patience")}) {
    const KeyValue& value = config.value(key);
    const bool is_on = value != KeyValue(false) && !config.is_null(key);
    if (!is_on || !config.is_given(key) || evaluates) continue;
    config.problem(
        fmt::format("`{}` needs evaluation", key), key,
        fmt::format("`{}` is no ({})", when, config.origin(when)),
        fmt::format("set `custom.val_jsonl` and `{}: steps`, or remove `{}`", when, key));
  }
  if (config.boolean(stop) && evaluates && !config.rolls_out()) {
    config.problem(
        fmt::format("`{}` needs rollouts", stop), stop,
        "stage 1 without a rollout_matching section evaluates the teacher-forced loss only",
        fmt::format("add `{}:` with a `rollout_backend`, or remove `{}`", kRolloutMatching, stop));
  }
}

void apply_best_metric_rules(Draft& config) {
  const std::string key = "training.metric_for_best_model";
  const Strings legal = evaluation_metrics(!config.is_stage_2(), config.rolls_out());
  const std::string usual = config.is_stage_2() ? "eval_rollout_f1" : "eval_loss";
  if (config.is_null(key)) {
    config.derive(key, usual, config.is_stage_2() ? "stage 2" : "stage 1");
  } else {
    const std::string name = config.text(key);
    const auto is_legal = [&](const std::string& text) { return contains(legal, text); };
    if (!is_legal(name) && is_legal("eval_" + name)) {  // transformers accepts both spellings
      config.set(key, "eval_" + name, config.origin(key), true);
    } else if (!is_legal(name)) {
      const Strings near = near_names(name, legal, 1);
      // A stage-2 file often inherits stage 1's metric: suggest the usual one, not a similar name.
      const bool inherited = name == "eval_token_acc" || name == "eval_loss" || near.empty();
      config.problem(fmt::format("`{}: {}` is not a metric of {}", key, name,
                                 config.is_stage_2() ? "stage 2" : "stage 1"),
                     key, fmt::format("metrics: {}", join(legal, ", ")),
                     fmt::format("set `{}: {}`", key, inherited ? usual : near.front()));
    }
  }
  if (config.is_null("training.greater_is_better")) {
    config.derive("training.greater_is_better", !config.text(key).ends_with("loss"), key);
  }
}

}  // namespace

void apply_evaluation_rules(Draft& config) {
  apply_strategy_rules(config);
  apply_health_rules(config);
  // Not for a stage that was refused.
  const std::string stage = "custom.trainer_variant";
  const Node* written = config.find_written(stage);
  if (!written || written->is_null() || config.is_given(stage)) apply_best_metric_rules(config);
}

}  // namespace rematch
