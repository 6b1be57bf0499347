#include <fmt/core.h>

#include <nlohmann/json.hpp>

#include "config/rules.h"

namespace rematch {

void apply_health_rules(Values& values, bool rollouts, std::vector<Problem>& problems) {
  const std::string start = "training.eval_on_start", stop = "training.stop_on_harm",
                    when = "training.eval_strategy";
  if (values.is_null(start)) values.derive(start, values.boolean(stop), stop);
  const bool evaluates = values.text(when) != "no";
  for (const std::string& key : {start, stop}) {
    if (!values.boolean(key) || !values.given(key) || evaluates) continue;
    problems.push_back(
        {fmt::format("`{}` needs evaluation", key), values.where(key),
         fmt::format("`{}` is no ({})", when, values.origin(when)),
         fmt::format("set `custom.val_jsonl` and `{}: steps`, or remove `{}`", when, key)});
  }
  if (values.boolean(stop) && evaluates && !rollouts) {
    problems.push_back(
        {fmt::format("`{}` needs rollouts", stop), values.where(stop),
         "stage 1 without a rollout_matching section evaluates the teacher-forced loss only",
         fmt::format("add `{}:` with a `rollout_backend`, or remove `{}`", kRolloutMatching,
                     stop)});
  }
}

}  // namespace rematch
