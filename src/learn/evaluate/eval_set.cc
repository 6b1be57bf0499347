#include "learn/evaluate/eval_set.h"

#include <fmt/core.h>

#include <initializer_list>
#include <optional>

#include "base/content_key.h"

namespace rematch {

std::string eval_set_text(const EvalSet& set) {
  const std::string prompts =
      fmt::format("{}:{}{}", set.system_prompt.size(), set.system_prompt, set.user_prompt);
  return fmt::format("{} records {}, labels {}, prompts {}", set.num_records, set.records,
                     set.labels, content_hash_of(prompts));
}

bool same_eval_set(const std::string& a, const ScoreOf& scores_a, const std::string& b,
                   const ScoreOf& scores_b) {
  if (!a.empty() && !b.empty()) return a == b;
  for (const char* count : {"num_samples", "eval_rollout_gt_objects"}) {
    const std::optional<double> value_a = scores_a(count), value_b = scores_b(count);
    if (value_a && value_b && *value_a != *value_b) return false;
  }
  return true;
}

}  // namespace rematch
